//! Rules about the arguments of a race.

use super::setup::RaceSetup;
use crate::arguments::{RaceArguments, StrategyName};
use crate::error::UsageError;

/// Scope of the options of judges.
const JUDGED: &str = "races with `--judge`";

impl RaceSetup {
    /// Rejects contradicting settings.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        use StrategyName::{Judge, Majority, Pairwise, Panel, Verifier};
        let is = |names: &[StrategyName]| names.contains(&self.strategy);
        if is(&[Judge, Panel, Pairwise]) && self.judges.is_empty() {
            return Err(no_judge());
        }
        if is(&[Judge, Pairwise]) && self.judges.len() > 1 {
            return Err(
                UsageError::new("this strategy takes one judge").hint("use `--strategy panel`")
            );
        }
        let judged = is(&[Judge, Panel, Pairwise, Verifier]);
        let (has_judges, is_panel) = (!self.judges.is_empty(), self.is_panel());
        let table = [
            (
                "--judge",
                has_judges && !judged,
                "the strategies judge, panel, pairwise and verifier",
            ),
            ("--judge-prompt", self.judge_prompt.is_some() && !has_judges, JUDGED),
            ("--judge-context", self.judge_context.is_some() && !has_judges, JUDGED),
            ("--judge-rounds", self.judge_rounds.is_some() && !has_judges, JUDGED),
            ("--judge-orders", self.judge_orders.is_some() && !has_judges, JUDGED),
            ("--quorum", self.quorum.is_some() && !is_panel, "panels"),
            (
                "--target",
                !self.branches.targets.is_empty() && self.suite.is_none(),
                "races with `--suite`",
            ),
            ("--extract", self.extract.is_some() && !is(&[Majority]), "`--strategy majority`"),
            ("--expect", self.expect.is_some() && !is(&[Verifier]), "`--strategy verifier`"),
            ("--verify", self.verify.is_some() && !is(&[Verifier]), "`--strategy verifier`"),
        ];
        if let Some((flag, _, scope)) = table.iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(UsageError::new(format!("{flag} is for {scope}")));
        }
        if is(&[Verifier]) && self.expect.is_none() && self.verify.is_none() {
            return Err(UsageError::new("the verifier needs --expect or --verify")
                .hint("`--expect REGEX`, or `--verify COMMAND`"));
        }
        self.tools.check(&self.branches)
    }

    /// Returns whether several judges vote.
    fn is_panel(&self) -> bool {
        match self.strategy {
            StrategyName::Panel => true,
            StrategyName::Verifier => self.judges.len() > 1,
            _ => false,
        }
    }
}

/// Returns the error of a strategy without its judge.
pub(super) fn no_judge() -> UsageError {
    UsageError::new("this strategy needs --judge").hint("`--judge MODEL` sets the judge model")
}

/// Rejects arguments that would change a race that is resumed.
pub(super) fn check_unchanged(arguments: &RaceArguments) -> Result<(), UsageError> {
    let flags = [
        ("--model", !arguments.models.is_empty()),
        ("--target", !arguments.targets.is_empty()),
        ("--samples", arguments.samples.is_some()),
        ("--again", arguments.again),
        ("--judge", !arguments.judges.is_empty()),
        ("--strategy", arguments.strategy.is_some()),
        ("--judge-prompt", arguments.judge_prompt.is_some()),
        ("--judge-context", arguments.judge_context.is_some()),
        ("--judge-rounds", arguments.judge_rounds.is_some()),
        ("--judge-orders", arguments.judge_orders.is_some()),
        ("--quorum", arguments.quorum.is_some()),
        ("--extract", arguments.extract.is_some()),
        ("--expect", arguments.expect.is_some()),
        ("--verify", arguments.verify.is_some()),
        ("--temperature", arguments.temperature.is_some()),
        ("--max-tokens", arguments.max_tokens.is_some()),
        ("--thinking", arguments.thinking.is_some()),
        ("--tool", !arguments.tools.is_empty()),
        ("--fetch-host", !arguments.fetch_hosts.is_empty()),
        ("--mcp", !arguments.mcp.is_empty()),
        ("--workspace", arguments.workspace.is_some()),
        ("--max-turns", arguments.max_turns.is_some()),
        ("--timeout", arguments.timeout.is_some()),
        ("--seed", arguments.seed.is_some()),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(UsageError::new(format!("{flag} cannot change an interrupted race"))
                .hint("omit it to resume the race, or discard the race with `--abandon`"))
        }
    }
}

/// Returns the given strategy, or the default for these judges and branches.
pub(super) fn default_strategy(
    strategy: Option<StrategyName>,
    judges: &[String],
    branches: usize,
) -> Result<StrategyName, UsageError> {
    match (strategy, judges, branches) {
        (Some(strategy), _, _) => Ok(strategy),
        (None, [_], _) => Ok(StrategyName::Judge),
        (None, [_, ..], _) => Ok(StrategyName::Panel),
        (None, [], 1) => Ok(StrategyName::Transparent),
        (None, [], _) => Err(UsageError::new("no strategy or judge given").hint(
            "`--judge MODEL` lets a model choose; `--strategy fastest`, `majority`, `verifier` and others need none",
        )),
    }
}
