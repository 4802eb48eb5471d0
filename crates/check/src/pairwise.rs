//! The kind `pairwise`: a model compares an answer with a reference, in both orders.

use crate::info::{KindInfo, ParameterType, optional, required};
use crate::judge::{BetterResponse, Judge, JudgeError, JudgeMaterial, PairPreference, ask};
use crate::parameters::{Parameters, missing};
use crate::rubric::{MODEL, PROMPT};
use crate::{CheckFinding, Error};

/// A model's comparison of an answer with a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairwise {
    /// The judge: a name under `[models]`, or `provider/model`.
    pub model: String,
    /// The text that the answer is compared with.
    pub reference: String,
    /// Additional information for the judge.
    pub background: Option<String>,
    /// The worst comparison that passes.
    pub min: PairwiseMinimum,
}

/// The worst comparison with the reference that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairwiseMinimum {
    /// The answer is at least as good.
    Tie,
    /// The answer is better.
    Win,
}

/// The order in which a judge sees the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairOrder {
    /// The answer is response 1.
    AnswerFirst,
    /// The reference is response 1.
    ReferenceFirst,
}

/// How the answer compares with the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceComparison {
    /// The answer is better.
    Better,
    /// The reference is better.
    Worse,
    /// Neither is better.
    Tie,
}

pub(crate) const PAIRWISE: KindInfo = KindInfo::new(
    "pairwise",
    "A model compares the answer with a reference in both orders. The answer must be better or (with `min = \"tie\"`) equally good; orders that disagree are a tie.",
    &[
        MODEL,
        required("reference", ParameterType::Template, "Text that the answer is compared with."),
        optional(
            "min",
            ParameterType::Choice(&["tie", "win"]),
            "Worst comparison that passes [default: tie].",
        ),
        PROMPT,
    ],
    "kind = \"pairwise\"\nmodel = \"sim/judge\"\nreference = \"It is {{ expected }}. [quality 0.50]\"\nmin = \"win\"",
);

impl Pairwise {
    pub(crate) fn build(parameters: Parameters<'_>) -> Result<Pairwise, Error> {
        Ok(Pairwise {
            model: parameters.non_empty_text("model")?,
            reference: parameters.non_empty_text("reference")?,
            background: parameters.text("prompt").map(str::to_owned),
            min: match parameters.text("min") {
                None | Some("tie") => PairwiseMinimum::Tie,
                Some("win") => PairwiseMinimum::Win,
                Some(_) => return Err(missing("min")),
            },
        })
    }

    /// Returns the prompt in one of the orders.
    pub fn prompt(&self, answer: &str, order: PairOrder) -> String {
        self.material(&self.responses(answer, order)).prompt(&BetterResponse)
    }

    /// Asks the judge in both orders.
    ///
    /// # Errors
    ///
    /// The judge gave no verdict in one of the orders, which is neither a pass nor a failure.
    pub async fn judge<J: Judge>(
        &self,
        answer: &str,
        judge: &mut J,
    ) -> Result<CheckFinding, JudgeError<J::Error>> {
        let first = self.compare(answer, PairOrder::AnswerFirst, judge).await?;
        let second = self.compare(answer, PairOrder::ReferenceFirst, judge).await?;
        Ok(self.conclude(first, second))
    }

    async fn compare<J: Judge>(
        &self,
        answer: &str,
        order: PairOrder,
        judge: &mut J,
    ) -> Result<ReferenceComparison, JudgeError<J::Error>> {
        let responses = self.responses(answer, order);
        let preference = ask(judge, &BetterResponse, &self.material(&responses)).await?;
        Ok(ReferenceComparison::of(preference, order))
    }

    fn responses<'t>(&'t self, answer: &'t str, order: PairOrder) -> [&'t str; 2] {
        match order {
            PairOrder::AnswerFirst => [answer, &self.reference],
            PairOrder::ReferenceFirst => [&self.reference, answer],
        }
    }

    fn material<'t>(&'t self, responses: &'t [&'t str]) -> JudgeMaterial<'t> {
        JudgeMaterial {
            background: self.background.as_deref(),
            responses,
            ..JudgeMaterial::default()
        }
    }

    /// Combines the comparisons of both orders. Orders that disagree are a tie.
    pub fn conclude(
        &self,
        first: ReferenceComparison,
        second: ReferenceComparison,
    ) -> CheckFinding {
        let (comparison, message) = match (first, second) {
            (first, second) if first != second => {
                (ReferenceComparison::Tie, "a tie: the judge's preference depends on the order")
            }
            (ReferenceComparison::Better, _) => {
                (ReferenceComparison::Better, "better than the reference")
            }
            (ReferenceComparison::Worse, _) => {
                (ReferenceComparison::Worse, "worse than the reference")
            }
            (ReferenceComparison::Tie, _) => (ReferenceComparison::Tie, "a tie with the reference"),
        };
        let holds = match self.min {
            PairwiseMinimum::Tie => comparison != ReferenceComparison::Worse,
            PairwiseMinimum::Win => comparison == ReferenceComparison::Better,
        };
        let score = match comparison {
            ReferenceComparison::Better => 1.0,
            ReferenceComparison::Tie => 0.5,
            ReferenceComparison::Worse => 0.0,
        };
        CheckFinding::new(holds, message).with_score(score)
    }
}

impl ReferenceComparison {
    /// Translates a preference for response 1 or 2.
    pub fn of(preference: PairPreference, order: PairOrder) -> ReferenceComparison {
        match (preference, order) {
            (PairPreference::Tie, _) => ReferenceComparison::Tie,
            (PairPreference::First, PairOrder::AnswerFirst)
            | (PairPreference::Second, PairOrder::ReferenceFirst) => ReferenceComparison::Better,
            (PairPreference::First, PairOrder::ReferenceFirst)
            | (PairPreference::Second, PairOrder::AnswerFirst) => ReferenceComparison::Worse,
        }
    }
}
