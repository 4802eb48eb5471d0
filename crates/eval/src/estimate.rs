//! What a run would take, without making a call.

use crate::suite::{Suite, TargetKind};
use bakeoff_core::{NanoDollars, TargetName, Usage};
use std::collections::BTreeMap;

/// What is assumed of answers whose length nobody bounds.
const ANSWER_TOKENS: u64 = 200;

/// What a run would take.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Cases.
    pub cases: u64,
    /// Trials of each.
    pub trials: u32,
    /// One entry per target.
    pub targets: Vec<TargetEstimate>,
    /// Calls of models that judge, by their names; what they take is not estimated.
    pub judges: BTreeMap<String, u64>,
}

/// What one target would take.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetEstimate {
    /// The target's name.
    pub name: TargetName,
    /// `provider/model`, or the program.
    pub what: String,
    /// Trials over all cases.
    pub trials: u64,
    /// Tokens; absent for programs.
    pub usage: Option<Usage>,
    /// Money; absent when the price is not known.
    pub cost: Option<NanoDollars>,
    /// It takes more: how often a model with tools is called is not known, and one call is counted.
    pub is_least: bool,
}

impl Estimate {
    /// Trials over all targets.
    pub fn total_trials(&self) -> u64 {
        self.targets.iter().map(|target| target.trials).sum()
    }

    /// Money over all targets whose price is known.
    pub fn total_cost(&self) -> NanoDollars {
        let costs = self.targets.iter().filter_map(|target| target.cost);
        costs.fold(NanoDollars::default(), NanoDollars::saturating_add)
    }
}

/// Estimates a run of the whole suite: four characters to a token, and 200 tokens to an answer
/// unless `max_tokens` is smaller.
pub fn estimate(suite: &Suite) -> Estimate {
    let cases = suite.survey.ids.len() as u64;
    let trials = suite.settings.trials;
    let total = cases * u64::from(trials);
    let targets = suite
        .targets
        .iter()
        .map(|target| {
            let (what, usage, cost) = match &target.kind {
                TargetKind::Service(service) => (service.service.address().to_owned(), None, None),
                TargetKind::Program(program) => {
                    let words: Vec<_> =
                        program.command.iter().map(|word| word.to_string_lossy()).collect();
                    (words.join(" "), None, None)
                }
                TargetKind::Model(model) => {
                    let templates = model.system.iter().chain([&target.prompt]);
                    let input = prompt_tokens(suite, &templates.collect::<Vec<_>>());
                    let most = model.request.max_tokens.unwrap_or(ANSWER_TOKENS);
                    let usage = Usage {
                        input: input * u64::from(trials),
                        output: total * most.min(ANSWER_TOKENS),
                        ..Usage::default()
                    };
                    // Some prices rise with the length of a call, so it is a call that is priced.
                    let calls = total.max(1);
                    let call = Usage {
                        input: usage.input.div_ceil(calls),
                        output: usage.output.div_ceil(calls),
                        ..Usage::default()
                    };
                    let times = |cost: NanoDollars| {
                        NanoDollars(cost.0.saturating_mul(i64::try_from(calls).unwrap_or(i64::MAX)))
                    };
                    let what = match &model.agent {
                        Some(_) => format!("{} with tools, at least one call each", model.label),
                        None => model.label.clone(),
                    };
                    (what, Some(usage), model.model.cost(&call).map(times))
                }
            };
            let (name, is_least) = (target.name.clone(), target.agent().is_some());
            TargetEstimate { name, what, trials: total, usage, cost, is_least }
        })
        .collect();
    Estimate { cases, trials, targets, judges: judge_calls(suite) }
}

/// Calls of each judge, as long as its first reply is a verdict.
fn judge_calls(suite: &Suite) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    if suite.judges.is_empty() {
        return calls;
    }
    for case in suite.cases.iter().filter_map(Result::ok) {
        let own = suite.own_checks(&case).unwrap_or_default();
        let checks = suite.checks.iter().chain(&own);
        for check in checks.filter(|check| check.applies_to_tags(&case.tags)) {
            let targets = suite.targets.iter().filter(|target| check.applies_to(&target.name));
            let count = targets.count() as u64 * u64::from(suite.settings.trials);
            if let Some(judge) = &check.judge {
                *calls.entry(judge.clone()).or_default() += count * check.judge_calls();
            }
        }
    }
    calls
}

/// Tokens of all cases' prompts; what cannot be rendered counts as nothing.
fn prompt_tokens(suite: &Suite, templates: &[&crate::Template]) -> u64 {
    let tokens = |case: &crate::Case| -> u64 {
        let lengths = templates.iter().filter_map(|template| template.render(&case.fields).ok());
        lengths.map(|text| (text.chars().count() as u64).div_ceil(4)).sum()
    };
    suite.cases.iter().filter_map(Result::ok).map(|case| tokens(&case)).sum()
}
