//! What a run would take, without making a call.

use bakeoff_core::{NanoDollars, TargetName, Usage};
use bakeoff_suite::{ModelTarget, Step, Suite, Target, TargetKind};
use bakeoff_suite::{Template, with_texts};
use minijinja::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// `provider/model`, those of a chain's steps, or the program.
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
    // Combinations of a target are asked the same, as far as one can know.
    let mut prompts: BTreeMap<&TargetName, Vec<u64>> = BTreeMap::new();
    let targets = suite
        .targets
        .iter()
        .map(|target| {
            let what = match &target.kind {
                TargetKind::Service(service) => service.service.address().to_owned(),
                TargetKind::Program(program) => {
                    let words: Vec<_> =
                        program.command.iter().map(|word| word.to_string_lossy()).collect();
                    words.join(" ")
                }
                TargetKind::Model(model) => match &model.agent {
                    Some(_) => format!("{} with tools, at least one call each", model.label),
                    None => model.label.clone(),
                },
                TargetKind::Chain(chain) => {
                    let labels = chain.steps.iter().map(|step| step.model.label.as_str());
                    labels.collect::<Vec<_>>().join(", then ")
                }
            };
            let tokens =
                prompts.entry(target.base()).or_insert_with(|| prompt_tokens(suite, target));
            let calls = target.models().into_iter().zip(&*tokens);
            let taken: Vec<_> =
                calls.map(|(model, input)| taken(model, *input, trials, total)).collect();
            let usage = taken.iter().map(|(usage, _)| *usage).reduce(|mut sum, usage| {
                sum += usage;
                sum
            });
            let costs = taken.iter().map(|(_, cost)| *cost);
            let cost = costs.reduce(|sum, cost| Some(sum?.saturating_add(cost?))).flatten();
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
            let targets = suite.targets.iter().filter(|target| check.applies_to(target.base()));
            let count = targets.count() as u64 * u64::from(suite.settings.trials);
            if let Some(judge) = &check.judge {
                *calls.entry(judge.clone()).or_default() += count * check.judge_calls();
            }
        }
    }
    calls
}

/// What all calls of a model would take, with so many tokens of prompts over all cases.
fn taken(model: &ModelTarget, input: u64, trials: u32, calls: u64) -> (Usage, Option<NanoDollars>) {
    let usage = Usage {
        input: input * u64::from(trials),
        output: calls * answer_tokens(model),
        ..Usage::default()
    };
    // Some prices rise with the length of a call, so it is a call that is priced.
    let calls = calls.max(1);
    let call = Usage {
        input: usage.input.div_ceil(calls),
        output: usage.output.div_ceil(calls),
        ..Usage::default()
    };
    let times = |cost: NanoDollars| {
        NanoDollars(cost.0.saturating_mul(i64::try_from(calls).unwrap_or(i64::MAX)))
    };
    (usage, model.model.cost(&call).map(times))
}

fn answer_tokens(model: &ModelTarget) -> u64 {
    model.request.max_tokens.unwrap_or(ANSWER_TOKENS).min(ANSWER_TOKENS)
}

/// Tokens of all cases' prompts, for each model that a target asks; what cannot be rendered counts
/// as nothing.
fn prompt_tokens(suite: &Suite, target: &Target) -> Vec<u64> {
    let cases = || suite.cases.iter().filter_map(Result::ok);
    let tokens = |templates: &[&Template], fields: &Value| -> u64 {
        let lengths = templates.iter().filter_map(|template| template.render(fields).ok());
        lengths.map(|text| (text.chars().count() as u64).div_ceil(4)).sum()
    };
    match &target.kind {
        TargetKind::Program(_) | TargetKind::Service(_) => Vec::new(),
        TargetKind::Model(model) => {
            let templates: Vec<&Template> = model.system.iter().chain([&target.prompt]).collect();
            vec![cases().map(|case| tokens(&templates, &case.fields)).sum()]
        }
        TargetKind::Chain(chain) => {
            // Answers of earlier steps are as long as answers are taken to be.
            let answer = |step: &Arc<Step>| "word".repeat(answer_tokens(&step.model) as usize);
            let answers: Vec<String> = chain.steps.iter().map(answer).collect();
            let mut sums = vec![0; chain.steps.len()];
            for case in cases() {
                let known = chain.steps.iter().zip(&answers);
                let known = known.map(|(step, answer)| (step.name.as_str(), answer.as_str()));
                let fields = with_texts(&case.fields, known);
                for (sum, step) in sums.iter_mut().zip(&chain.steps) {
                    let templates: Vec<&Template> =
                        step.model.system.iter().chain([&step.prompt]).collect();
                    *sum += tokens(&templates, &fields);
                }
            }
            sums
        }
    }
}
