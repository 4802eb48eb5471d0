//! Chain targets: models called one after the other.

use super::attachments::LoadedAttachments;
use super::model::{ModelPrompt, call_model};
use crate::context::TrialContext;
use crate::trace::Trace;
use crate::trial::failed;
use bakeoff_core::{Attempt, ErrorKind, NanoDollars, TrialError, TrialKey};
use bakeoff_llm::Ordinals;
use bakeoff_suite::{Case, ChainStep, ChainTarget, Target, with_texts};
use serde_json::json;

/// Calls each step with the answers of the steps before it. The answer of the last is the chain's.
pub(super) async fn run_chain(
    context: &TrialContext,
    chain: &ChainTarget,
    target: &Target,
    case: &Case,
    key: &TrialKey,
) -> (Attempt, Trace) {
    let ordinals = Ordinals::default();
    let mut answers: Vec<(&str, String)> = Vec::with_capacity(chain.steps.len());
    let mut total = Attempt { cost: Some(NanoDollars(0)), cached: true, ..Attempt::default() };
    let mut trace = Trace::default();
    let mut attachments = match LoadedAttachments::load(case).await {
        Ok(attachments) => attachments,
        Err(attempt) => return (attempt, trace),
    };
    for step in &chain.steps {
        let known = answers.iter().map(|(name, answer)| (*name, answer.as_str()));
        let fields = with_texts(&case.fields, known);
        let (attempt, step_trace) = match step.prompt.render(&fields) {
            Ok(prompt) => {
                let prompt = ModelPrompt {
                    target: &step.model,
                    history: &[],
                    // Only the first step receives them.
                    attachments: std::mem::take(&mut attachments),
                    prompt,
                    fields: &fields,
                    ordinals: ordinals.clone(),
                };
                call_model(context, prompt, target, key).await
            }
            Err(reason) => {
                (failed(ErrorKind::Template, format!("prompt: {reason}")), Trace::default())
            }
        };
        let name = &step.name;
        let parts = [("request", step_trace.request), ("response", step_trace.response)];
        let parts = parts.into_iter().filter_map(|(part, value)| Some((part, value?)));
        trace.earlier.extend(parts.map(|(part, value)| json!({ "step": name, part: value })));
        add_step(&mut total, attempt, step);
        if total.error.is_some() {
            break;
        }
        answers.push((name, total.output.clone()));
    }
    (total, trace)
}

/// Adds the attempt of a step to that of the chain.
fn add_step(total: &mut Attempt, attempt: Attempt, step: &ChainStep) {
    if attempt.error.is_none() {
        let mut usage = total.usage.unwrap_or_default();
        usage += attempt.usage.unwrap_or_default();
        total.usage = Some(usage);
        // The sum is unknown if one cost is.
        total.cost = total.cost.zip(attempt.cost).map(|(sum, cost)| sum.saturating_add(cost));
        total.saved += attempt.saved;
    }
    total.lost_cost += attempt.lost_cost;
    total.cached &= attempt.cached;
    total.timing.latency_ms = total.timing.latency_ms.saturating_add(attempt.timing.latency_ms);
    total.timing.retries = total.timing.retries.saturating_add(attempt.timing.retries);
    total.tool_uses.extend(attempt.tool_uses);
    total.finish = attempt.finish;
    // The answer of an earlier step is not an answer of the chain.
    total.output = attempt.output;
    let named = |message| format!("step `{}`: {message}", step.name);
    total.error = attempt.error.map(|error| TrialError { message: named(error.message), ..error });
    if total.usage.is_none() {
        total.cost = None;
    }
}
