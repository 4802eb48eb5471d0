//! Prices of candidates and first rounds, as far as they are known before the first call.

use bakeoff_core::{NanoDollars, Usage};
use bakeoff_select::Cell;
use bakeoff_suite::{ModelTarget, Suite, Target, TargetKind, Template};
use std::collections::HashSet;

/// Cases whose prompts are measured.
const SAMPLED_CASES: usize = 20;

/// Returns the models of a target, each with its role and prompt.
fn calls(target: &Target) -> Vec<(Option<&str>, &ModelTarget, &Template)> {
    match &target.kind {
        TargetKind::Model(model) => vec![(None, model.as_ref(), &target.prompt)],
        TargetKind::Chain(chain) => chain
            .steps
            .iter()
            .map(|step| (step.role.as_deref(), &step.model, &step.prompt))
            .collect(),
        TargetKind::Program(_) | TargetKind::Service(_) => Vec::new(),
    }
}

/// Returns the price of a call with 1 000 prompt and 1 000 answer tokens, for each candidate of
/// each role.
pub(super) fn prices_per_call(suite: &Suite) -> Vec<Vec<Option<NanoDollars>>> {
    let Some(plan) = &suite.select else { return Vec::new() };
    let call = Usage { input: 1000, output: 1000, ..Usage::default() };
    let mut stride = suite.targets.len();
    let role = |(name, candidates): &(String, Vec<String>)| {
        stride /= candidates.len().max(1);
        let price = |candidate: usize| {
            let target = suite.targets.get(candidate * stride)?;
            let (_, model, _) = calls(target)
                .into_iter()
                .find(|(role, ..)| role.is_none_or(|role| role == name))?;
            model.model.cost(&call)
        };
        (0..candidates.len()).map(price).collect()
    };
    plan.roles.iter().map(role).collect()
}

/// Returns a lower bound of the cost of these cells: the prompts of the first model, estimated
/// from the first cases. Combinations that start with the same model share its answer; answers cost more.
pub(super) fn first_round_cost(suite: &Suite, cells: &[Cell]) -> NanoDollars {
    let none = NanoDollars::default();
    let Some(base) = suite.targets.first() else { return none };
    let Some(&(_, model, prompt)) = calls(base).first() else { return none };
    let templates = [Some(prompt), model.system.as_ref()];
    let tokens = |fields: &minijinja::Value| -> u64 {
        let texts = templates.iter().flatten().filter_map(|template| template.render(fields).ok());
        texts.map(|text| text.chars().count() as u64 / 4).sum()
    };
    let cases = suite.cases.iter().take(SAMPLED_CASES).filter_map(Result::ok);
    let (sum, count) =
        cases.fold((0, 0), |(sum, count), case| (sum + tokens(&case.fields), count + 1));
    let call = Usage { input: sum / count.max(1), output: 1, ..Usage::default() };
    let mut prices = vec![None; suite.targets.len()];
    let mut price = |combo: usize| -> NanoDollars {
        let Some(target) = suite.targets.get(combo) else { return none };
        *prices[combo].get_or_insert_with(|| {
            let first = calls(target).first().and_then(|(_, model, _)| model.model.cost(&call));
            first.unwrap_or_default()
        })
    };
    let mut seen = HashSet::new();
    let first_model = |combo: usize| {
        let calls = calls(suite.targets.get(combo)?);
        calls.first().map(|(_, model, _)| model.label.as_str())
    };
    let is_new = |cell: &&Cell| seen.insert((first_model(cell.combo), cell.datapoint));
    let prices = cells.iter().filter(is_new).map(|cell| price(cell.combo));
    prices.fold(none, NanoDollars::saturating_add)
}
