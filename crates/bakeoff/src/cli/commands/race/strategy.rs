//! The strategy that was named.

use super::setup::Setup;
use crate::arguments::StrategyName;
use crate::models::Refused;
use bakeoff_agent::AgentLoopConfig;
use bakeoff_check::{Check, CheckKind};
use bakeoff_race::{
    CheapestEvaluation, ElaborateEvaluation, EvaluationStrategy, Extraction, FastestEvaluation,
    LlmJudgeEvaluation, MajorityEvaluation, PairwiseEvaluation, PanelEvaluation,
    PickFirstEvaluation, ProgramVerifier, TokenEfficientEvaluation, TransparentEvaluation,
    VerifierEvaluation, Verify,
};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::sync::Arc;

impl Setup {
    pub(super) fn strategy(
        &self,
        judges: Vec<AgentLoopConfig>,
    ) -> Result<Arc<dyn EvaluationStrategy>, Refused> {
        let mut judges: Vec<LlmJudgeEvaluation> = judges
            .into_iter()
            .map(|config| LlmJudgeEvaluation {
                system_prompt: self.judge_prompt.clone(),
                ..LlmJudgeEvaluation::new(config)
            })
            .collect();
        let nobody = || Refused::new("nobody judges", "name a model with `--judge`");
        Ok(match self.strategy {
            StrategyName::Judge => Arc::new(judges.pop().ok_or_else(nobody)?),
            StrategyName::Panel => Arc::new(PanelEvaluation { judges }),
            StrategyName::Pairwise => {
                Arc::new(PairwiseEvaluation { judge: judges.pop().ok_or_else(nobody)? })
            }
            StrategyName::Majority => Arc::new(MajorityEvaluation::new(self.extraction()?)),
            StrategyName::Verifier => Arc::new(self.verifier(judges)?),
            StrategyName::Fastest => Arc::new(FastestEvaluation),
            StrategyName::Cheapest => Arc::new(CheapestEvaluation),
            StrategyName::TokenEfficient => Arc::new(TokenEfficientEvaluation),
            StrategyName::Elaborate => Arc::new(ElaborateEvaluation),
            StrategyName::First => Arc::new(PickFirstEvaluation),
            StrategyName::Transparent => Arc::new(TransparentEvaluation),
        })
    }

    fn extraction(&self) -> Result<Extraction, Refused> {
        let Some(pattern) = &self.extract else { return Ok(Extraction::Text) };
        let pattern =
            regex::Regex::new(pattern).map_err(|error| bad_pattern("--extract", &error))?;
        Ok(Extraction::Pattern(pattern))
    }

    fn verifier(&self, mut judges: Vec<LlmJudgeEvaluation>) -> Result<VerifierEvaluation, Refused> {
        let verifier: Arc<dyn Verify> = match (&self.expect, &self.verify) {
            (Some(pattern), _) => {
                let value = Value::String(pattern.clone());
                let parameters = Map::from_iter([("value".to_owned(), value)]);
                let kind = CheckKind::build("regex", &parameters)
                    .map_err(|error| bad_pattern("--expect", &error))?;
                let id = "expect".to_owned();
                Arc::new(Check { id, kind, negate: false, required: true, weight: 1.0 })
            }
            (None, command) => Arc::new(ProgramVerifier::new(shell(command.as_deref())?)),
        };
        let verifier = VerifierEvaluation::new(verifier);
        Ok(match judges.len() {
            0 => verifier,
            1 => verifier.among(Arc::new(judges.remove(0))),
            _ => verifier.among(Arc::new(PanelEvaluation { judges })),
        })
    }
}

/// A shell command in the folder where it was typed.
fn shell(command: Option<&str>) -> Result<[OsString; 6], Refused> {
    let folder = std::env::current_dir().map_err(|error| Refused {
        message: format!("cannot find the current folder: {error}"),
        hint: None,
    })?;
    let there = "cd -- \"$1\" && eval \"$2\"";
    let command = command.unwrap_or_default();
    Ok(["sh".into(), "-c".into(), there.into(), "verify".into(), folder.into(), command.into()])
}

fn bad_pattern(flag: &str, error: &dyn std::fmt::Display) -> Refused {
    Refused { message: format!("{flag}: {error}"), hint: None }
}
