//! The kind `rubric`: a model judges one answer by statements or by a score.

use crate::info::{KindInfo, ParameterInfo, ParameterType, optional};
use crate::judge::{
    InvalidReply, Judge, JudgeError, JudgeMaterial, JudgeQuestion, ask, parse_object,
};
use crate::parameters::Parameters;
use crate::{CheckFinding, Error};
use serde::Deserialize;

/// Characters of the judge's evidence that a message shows.
const MAX_EVIDENCE_CHARACTERS: usize = 200;

/// A model's assessment of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rubric {
    /// The judge: a name under `[models]`, or `provider/model`.
    pub model: String,
    /// What the judge assesses.
    pub criterion: RubricCriterion,
    /// Additional information for the judge.
    pub background: Option<String>,
}

/// What a rubric's judge assesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RubricCriterion {
    /// Statements that must all be true of the answer.
    Checklist(Vec<String>),
    /// The quality of the answer, from 1 to 5.
    Score {
        /// What the score measures.
        about: String,
        /// The lowest score that passes.
        min: u64,
    },
}

// Required when the kind is built; the suite may add its default.
pub(crate) const MODEL: ParameterInfo = optional(
    "model",
    ParameterType::Text,
    "The judge: a name under [models], or provider/model [default: `judge` of the suite].",
);

pub(crate) const PROMPT: ParameterInfo = optional(
    "prompt",
    ParameterType::Template,
    "Background for the judge, such as the question that was asked.",
);

const MIN_SCORE: ParameterInfo = optional(
    "min_score",
    ParameterType::Number { min: 0.0, max: 1.0 },
    "Lowest score from 0 to 1 that passes: the share of true statements, or (score - 1) / 4 [default: all statements, or `min`].",
);

pub(crate) const RUBRIC: KindInfo = KindInfo::new(
    "rubric",
    "A model judges the answer: all statements in `criteria` are true, or its `score` from 1 to 5 is at least `min`.",
    &[
        MODEL,
        optional("criteria", ParameterType::Templates, "Statements that must all be true."),
        optional("score", ParameterType::Template, "What the score measures."),
        optional(
            "min",
            ParameterType::Integer { min: 1, max: 5 },
            "With `score`: the lowest score that passes [default: 4].",
        ),
        MIN_SCORE,
        PROMPT,
    ],
    "kind = \"rubric\"\nmodel = \"sim/judge\"\ncriteria = ['It names \"{{ expected }}\".', 'It names \"{{ country }}\".']\nprompt = \"Question: What is the capital of {{ country }}?\"",
);

impl Rubric {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<Rubric, Error> {
        let criterion = match parameters.one_of(&["criteria", "score"])? {
            "score" if parameters.value("min").and(parameters.value("min_score")).is_some() => {
                return Err(Error::new("min_score", "the check has either `min` or `min_score`"));
            }
            "criteria" if parameters.value("min").is_some() => {
                return Err(Error::new(
                    "min",
                    "`min` is for `score`; all of `criteria` must be true",
                ));
            }
            "criteria" => RubricCriterion::Checklist(parameters.non_empty_texts("criteria")?),
            _ => RubricCriterion::Score {
                about: parameters.non_empty_text("score")?,
                min: parameters.count("min").unwrap_or(4),
            },
        };
        Ok(Rubric {
            model: parameters.non_empty_text("model")?,
            criterion,
            background: parameters.text("prompt").map(str::to_owned),
        })
    }

    /// Returns the prompt about an answer.
    pub fn prompt(&self, answer: &str) -> String {
        self.material(&[answer]).prompt(self)
    }

    /// Asks the judge about an answer.
    ///
    /// # Errors
    ///
    /// The judge gave no verdict, which is neither a pass nor a failure.
    pub async fn judge<J: Judge>(
        &self,
        answer: &str,
        judge: &mut J,
    ) -> Result<CheckFinding, JudgeError<J::Error>> {
        ask(judge, self, &self.material(&[answer])).await
    }

    fn material<'t>(&'t self, responses: &'t [&'t str]) -> JudgeMaterial<'t> {
        JudgeMaterial {
            background: self.background.as_deref(),
            responses,
            ..JudgeMaterial::default()
        }
    }
}

impl JudgeQuestion for Rubric {
    type Verdict = CheckFinding;

    fn role(&self) -> &str {
        "You are an impartial judge. You assess one response of a system under test, by nothing but what you are \
         asked about it."
    }

    fn text(&self) -> String {
        match &self.criterion {
            RubricCriterion::Checklist(statements) => {
                let mut text = "Which of these statements are true of the response?\n".to_owned();
                for (number, statement) in (1..).zip(statements) {
                    text.push_str(&format!("\n{number}. {statement}"));
                }
                text
            }
            RubricCriterion::Score { about, .. } => format!(
                "How good is the response, from 1 (worst) to 5 (best), measured by this?\n\n{about}"
            ),
        }
    }

    fn verdict_form(&self) -> String {
        match &self.criterion {
            RubricCriterion::Checklist(_) => "the JSON object {\"verdicts\": [{\"criterion\": 1, \"reason\": \"…\", \"met\": true or false}, …]}, one entry per statement, in their order".to_owned(),
            RubricCriterion::Score { .. } => "the JSON object {\"score\": 1 to 5}".to_owned(),
        }
    }

    fn parse(&self, reply: &str) -> Result<CheckFinding, InvalidReply> {
        match &self.criterion {
            RubricCriterion::Checklist(statements) => parse_checklist(reply, statements),
            RubricCriterion::Score { min, .. } => parse_score(reply, *min),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChecklistVerdict {
    verdicts: Vec<CriterionResult>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CriterionResult {
    criterion: usize,
    met: bool,
    reason: Option<String>,
}

fn parse_checklist(reply: &str, statements: &[String]) -> Result<CheckFinding, InvalidReply> {
    let (ChecklistVerdict { verdicts }, _) = parse_object(reply)?;
    let numbers: Vec<usize> = verdicts.iter().map(|result| result.criterion).collect();
    if numbers != (1..=statements.len()).collect::<Vec<_>>() {
        return Err(InvalidReply::new(format!(
            "does not have one entry for each of 1 to {}",
            statements.len()
        )));
    }
    let unmet: Vec<String> = verdicts
        .iter()
        .zip(statements)
        .filter(|(result, _)| !result.met)
        .map(|(result, statement)| {
            format!("not true: {statement}{}", in_parentheses(result.reason.as_deref()))
        })
        .collect();
    let finding = match unmet.is_empty() {
        true => CheckFinding::new(true, "all statements are true"),
        false => CheckFinding::new(false, unmet.join("; ")),
    };
    let met = statements.len() - unmet.len();
    Ok(finding.with_score(met as f64 / statements.len() as f64))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreVerdict {
    score: u64,
    reason: Option<String>,
}

fn parse_score(reply: &str, min: u64) -> Result<CheckFinding, InvalidReply> {
    let (ScoreVerdict { score, reason }, evidence) = parse_object(reply)?;
    if !(1..=5).contains(&score) {
        return Err(InvalidReply::new(format!("has the score {score}, which is not from 1 to 5")));
    }
    let evidence = (!evidence.is_empty()).then(|| start_of(evidence));
    let reason = in_parentheses(reason.or(evidence).as_deref());
    let message = format!("score {score}, expected at least {min}{reason}");
    Ok(CheckFinding::new(score >= min, message).with_score((score - 1) as f64 / 4.0))
}

/// Returns the start of the evidence, on one line.
fn start_of(evidence: &str) -> String {
    let line = evidence.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EVIDENCE_CHARACTERS) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

fn in_parentheses(reason: Option<&str>) -> String {
    reason.map(|reason| format!(" ({})", reason.trim())).unwrap_or_default()
}
