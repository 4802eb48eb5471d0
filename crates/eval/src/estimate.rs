//! Estimate of the tokens and cost of a run, without making a call.

use crate::case_selection::{CaseSelection, select_cases};
use crate::trial_plan::TrialPlan;
use crate::{Error, RunConfig};
use bakeoff_core::{NanoDollars, TargetName, Usage, estimate_tokens, media_tokens};
use bakeoff_llm::ANSWER_TOKENS;
use bakeoff_suite::{
    Case, ChainStep, ModelTarget, Suite, Target, TargetKind, Template, with_texts,
};
use minijinja::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Estimate for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Number of cases.
    pub cases: u64,
    /// Trials of each case without its own number.
    pub trials: u32,
    /// Estimates of the targets.
    pub targets: Vec<TargetEstimate>,
    /// Number of calls of each judge; their cost is not estimated.
    pub judges: BTreeMap<String, u64>,
}

/// Estimate for one target.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetEstimate {
    /// Name of the target.
    pub name: TargetName,
    /// `provider/model`, those of a chain's steps, or the command.
    pub what: String,
    /// Trials over all cases.
    pub trials: u64,
    /// Tokens; unknown for programs and services.
    pub usage: Option<Usage>,
    /// Cost; absent when a price is not known.
    pub cost: Option<NanoDollars>,
    /// Whether the estimate is a lower bound: of a model with tools, one call per trial is counted.
    pub is_lower_bound: bool,
}

impl Estimate {
    /// Returns the number of trials of all targets.
    pub fn total_trials(&self) -> u64 {
        self.targets.iter().map(|target| target.trials).sum()
    }

    /// Returns the cost of all targets with known prices.
    pub fn total_cost(&self) -> NanoDollars {
        let costs = self.targets.iter().filter_map(|target| target.cost);
        costs.fold(NanoDollars::default(), NanoDollars::saturating_add)
    }
}

/// Estimates a run of the whole suite, with the tokens of prompts by their script and 200 tokens per answer unless
/// `max_tokens` is smaller.
pub fn estimate(suite: &Suite) -> Estimate {
    let cases = CaseSelection::all(suite);
    let plan = TrialPlan::of_suite(suite, &RunConfig::default(), &cases);
    estimate_selection(suite, &cases, &plan)
}

/// Estimates a run of the cases that these settings select, like [`estimate`].
///
/// # Errors
///
/// When the settings select no case.
pub fn estimate_cases(suite: &Suite, config: &RunConfig) -> Result<Estimate, Error> {
    let cases = select_cases(suite, &config.case_filter())?;
    let plan = TrialPlan::of_suite(suite, config, &cases);
    Ok(estimate_selection(suite, &cases, &plan))
}

fn estimate_selection(suite: &Suite, selection: &CaseSelection, plan: &TrialPlan) -> Estimate {
    let (cases, total) = (plan.cases() as u64, plan.total() as u64);
    // Combinations of a target have the same prompts, apart from the answers of earlier steps.
    let mut prompts: BTreeMap<&TargetName, Vec<u64>> = BTreeMap::new();
    let targets = suite
        .targets
        .iter()
        .map(|target| {
            let what = match &target.kind {
                TargetKind::Service(service) => service.service.address().to_owned(),
                TargetKind::Program(program) => {
                    let arguments: Vec<_> =
                        program.command.iter().map(|argument| argument.to_string_lossy()).collect();
                    arguments.join(" ")
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
            let tokens = prompts
                .entry(target.base())
                .or_insert_with(|| prompt_tokens(suite, selection, plan, target));
            let calls = target.models().into_iter().zip(&*tokens);
            let estimates: Vec<_> =
                calls.map(|(model, input)| estimate_calls(model, *input, total)).collect();
            let usage = estimates.iter().map(|(usage, _)| *usage).reduce(|mut sum, usage| {
                sum += usage;
                sum
            });
            let costs = estimates.iter().map(|(_, cost)| *cost);
            let cost = costs.reduce(|sum, cost| Some(sum?.saturating_add(cost?))).flatten();
            let (name, is_lower_bound) = (target.name.clone(), target.agent().is_some());
            TargetEstimate { name, what, trials: total, usage, cost, is_lower_bound }
        })
        .collect();
    let (trials, judges) = (plan.default().trials, judge_calls(suite, selection, plan));
    Estimate { cases, trials, targets, judges }
}

/// Returns the number of calls of each judge, without re-asking.
fn judge_calls(
    suite: &Suite,
    selection: &CaseSelection,
    plan: &TrialPlan,
) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    if suite.judges.is_empty() {
        return calls;
    }
    for (case, trials) in planned_cases(suite, selection, plan) {
        let own = suite.case_checks(&case).unwrap_or_default();
        let checks = suite.checks.iter().chain(&own);
        for check in checks.filter(|check| check.applies_to_tags(&case.tags)) {
            let targets = suite.targets.iter().filter(|target| check.applies_to(target.base()));
            let count = targets.count() as u64 * trials;
            for (judge, per_output) in &check.judge_calls {
                *calls.entry(judge.clone()).or_default() += count * per_output;
            }
        }
    }
    calls
}

/// Returns the selected cases with their numbers of trials.
fn planned_cases<'a>(
    suite: &'a Suite,
    selection: &'a CaseSelection,
    plan: &'a TrialPlan,
) -> impl Iterator<Item = (Case, u64)> {
    selection.cases(suite).map(|case| {
        let position = selection.position(case.index).unwrap_or_default();
        (case, plan.rule(position).trials.into())
    })
}

/// Estimates all calls of a model; `input` is the number of prompt tokens over all trials.
fn estimate_calls(model: &ModelTarget, input: u64, calls: u64) -> (Usage, Option<NanoDollars>) {
    let usage = Usage { input, output: calls * answer_tokens(model), ..Usage::default() };
    // Some prices depend on the length of the prompt, so a single call is priced.
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
    let max_tokens = model.request.max_tokens.or(model.model.settings().max_tokens);
    max_tokens.unwrap_or(ANSWER_TOKENS).min(ANSWER_TOKENS)
}

/// Returns the tokens of all trials' prompts for each model of a target. Prompts that cannot be rendered
/// count as empty.
fn prompt_tokens(
    suite: &Suite,
    selection: &CaseSelection,
    plan: &TrialPlan,
    target: &Target,
) -> Vec<u64> {
    let cases = || planned_cases(suite, selection, plan);
    let text_tokens = |text: String| estimate_tokens(&text);
    let tokens = |templates: &[&Template], fields: &Value| -> u64 {
        let texts = templates.iter().filter_map(|template| template.render(fields).ok());
        texts.map(text_tokens).sum()
    };
    let media = |case: &Case| -> u64 {
        case.attachments.iter().map(|file| media_tokens(file.media_type, file.bytes)).sum()
    };
    let history_tokens = |case: &Case| -> u64 {
        case.history.iter().map(|message| text_tokens(message.text())).sum()
    };
    match &target.kind {
        TargetKind::Program(_) | TargetKind::Service(_) => Vec::new(),
        TargetKind::Model(model) => {
            let templates: Vec<&Template> = model.system.iter().chain([&target.prompt]).collect();
            let case_tokens = |(case, trials): (Case, u64)| {
                trials * (tokens(&templates, &case.fields) + history_tokens(&case) + media(&case))
            };
            vec![cases().map(case_tokens).sum()]
        }
        TargetKind::Chain(chain) => {
            // Answers of earlier steps have the assumed length.
            let answer = |step: &Arc<ChainStep>| "word".repeat(answer_tokens(&step.model) as usize);
            let answers: Vec<String> = chain.steps.iter().map(answer).collect();
            let mut sums = vec![0; chain.steps.len()];
            for (case, trials) in cases() {
                let known = chain.steps.iter().zip(&answers);
                let known = known.map(|(step, answer)| (step.name.as_str(), answer.as_str()));
                let fields = with_texts(&case.fields, known);
                if let Some(first) = sums.first_mut() {
                    *first += trials * media(&case);
                }
                for (sum, step) in sums.iter_mut().zip(&chain.steps) {
                    let templates: Vec<&Template> =
                        step.model.system.iter().chain([&step.prompt]).collect();
                    *sum += trials * tokens(&templates, &fields);
                }
            }
            sums
        }
    }
}
