//! Construction of the evaluation strategy.

use super::rules::no_judge;
use super::setup::RaceSetup;
use super::tools::shell;
use crate::arguments::StrategyName;
use crate::error::UsageError;
use bakeoff_agent::AgentLoopConfig;
use bakeoff_check::{Check, CheckKind};
use bakeoff_race::{
    CheapestEvaluation, ElaborateEvaluation, EvaluationStrategy, Extraction, FastestEvaluation,
    LlmJudgeEvaluation, MajorityEvaluation, Orders, PairwiseEvaluation, PanelEvaluation,
    PickFirstEvaluation, ProgramVerifier, TokenEfficientEvaluation, TransparentEvaluation,
    VerifierEvaluation, Verify,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

impl RaceSetup {
    pub(super) fn strategy(
        &self,
        judges: Vec<AgentLoopConfig>,
        environment: BTreeMap<String, OsString>,
    ) -> Result<Arc<dyn EvaluationStrategy>, UsageError> {
        let mut judges: Vec<LlmJudgeEvaluation> = judges
            .into_iter()
            .map(|config| {
                let mut judge = LlmJudgeEvaluation::new(config);
                judge.system_prompt.clone_from(&self.judge_prompt);
                judge.rounds = self.judge_rounds.unwrap_or(judge.rounds);
                if self.judge_orders == Some(1) {
                    judge.orders = Orders::AsGiven;
                }
                judge
            })
            .collect();
        Ok(match self.strategy {
            StrategyName::Judge => Arc::new(judges.pop().ok_or_else(no_judge)?),
            StrategyName::Panel => Arc::new(self.panel(judges)),
            StrategyName::Pairwise => {
                Arc::new(PairwiseEvaluation { judge: judges.pop().ok_or_else(no_judge)? })
            }
            StrategyName::Majority => Arc::new(MajorityEvaluation::new(self.extraction()?)),
            StrategyName::Verifier => Arc::new(self.verifier(judges, environment)?),
            StrategyName::Fastest => Arc::new(FastestEvaluation),
            StrategyName::Cheapest => Arc::new(CheapestEvaluation),
            StrategyName::TokenEfficient => Arc::new(TokenEfficientEvaluation),
            StrategyName::Elaborate => Arc::new(ElaborateEvaluation),
            StrategyName::First => Arc::new(PickFirstEvaluation),
            StrategyName::Transparent => Arc::new(TransparentEvaluation),
        })
    }

    fn panel(&self, judges: Vec<LlmJudgeEvaluation>) -> PanelEvaluation {
        let panel = PanelEvaluation::new(judges);
        match self.quorum {
            Some(quorum) => panel.quorum(quorum.into()),
            None => panel,
        }
    }

    fn extraction(&self) -> Result<Extraction, UsageError> {
        let Some(pattern) = &self.extract else { return Ok(Extraction::Text) };
        let pattern =
            regex::Regex::new(pattern).map_err(|error| invalid_pattern("--extract", &error))?;
        Ok(Extraction::Pattern(pattern))
    }

    fn verifier(
        &self,
        mut judges: Vec<LlmJudgeEvaluation>,
        environment: BTreeMap<String, OsString>,
    ) -> Result<VerifierEvaluation, UsageError> {
        let verifier: Arc<dyn Verify> = match (&self.expect, &self.verify) {
            (Some(pattern), _) => {
                let value = Value::String(pattern.clone());
                let parameters = Map::from_iter([("value".to_owned(), value)]);
                let kind = CheckKind::build("regex", &parameters)
                    .map_err(|error| invalid_pattern("--expect", &error))?;
                let id = "expect".to_owned();
                Arc::new(Check {
                    id,
                    kind,
                    negate: false,
                    required: true,
                    weight: 1.0,
                    min_score: None,
                })
            }
            (None, command) => {
                let folder = self.folder.as_deref().unwrap_or(Path::new("."));
                let command = shell(folder, command.as_deref().unwrap_or_default());
                Arc::new(ProgramVerifier::new(command).environment(environment))
            }
        };
        let verifier = VerifierEvaluation::new(verifier);
        Ok(match judges.len() {
            0 => verifier,
            1 => verifier.among(Arc::new(judges.remove(0))),
            _ => verifier.among(Arc::new(self.panel(judges))),
        })
    }
}

fn invalid_pattern(flag: &str, error: &dyn std::fmt::Display) -> UsageError {
    UsageError::new(format!("{flag}: {error}"))
}
