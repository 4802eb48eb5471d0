//! Models are asked one after the other.

use super::Question;
use crate::trial::{Trace, Trials, failed};
use bakeoff_core::{Attempt, ErrorKind, NanoDollars, TrialError, TrialKey};
use bakeoff_llm::Ordinals;
use bakeoff_suite::Case;
use bakeoff_suite::with_texts;
use bakeoff_suite::{ChainTarget, Step, Target};
use serde_json::json;

impl Trials {
    /// Asks each step, with the answers of those before it. The answer of the last is the chain's.
    pub(crate) async fn ask_chain(
        &self,
        chain: &ChainTarget,
        target: &Target,
        case: &Case,
        key: &TrialKey,
    ) -> (Attempt, Trace) {
        let ordinals = Ordinals::default();
        let mut answers: Vec<(&str, String)> = Vec::with_capacity(chain.steps.len());
        let mut whole = Attempt { cost: Some(NanoDollars(0)), cached: true, ..Attempt::default() };
        let mut trace = Trace::default();
        for step in &chain.steps {
            let known = answers.iter().map(|(name, answer)| (*name, answer.as_str()));
            let fields = with_texts(&case.fields, known);
            let (attempt, said) = match step.prompt.render(&fields) {
                Ok(prompt) => {
                    let (fields, ordinals) = (&fields, ordinals.clone());
                    let question = Question { target: &step.model, prompt, fields, ordinals };
                    self.ask_model(question, target, key).await
                }
                Err(reason) => {
                    (failed(ErrorKind::Template, format!("prompt: {reason}")), Trace::default())
                }
            };
            let name = &step.name;
            let parts = [("request", said.request), ("response", said.response)];
            let parts = parts.into_iter().filter_map(|(part, said)| Some((part, said?)));
            trace.earlier.extend(parts.map(|(part, said)| json!({ "step": name, part: said })));
            add(&mut whole, attempt, step);
            if whole.error.is_some() {
                break;
            }
            answers.push((name, whole.output.clone()));
        }
        (whole, trace)
    }
}

/// Adds a step to what came before it.
fn add(whole: &mut Attempt, step: Attempt, of: &Step) {
    let is_answer = step.error.is_none();
    if is_answer {
        let mut usage = whole.usage.unwrap_or_default();
        usage += step.usage.unwrap_or_default();
        whole.usage = Some(usage);
        // Without one price there is no sum.
        whole.cost = whole.cost.zip(step.cost).map(|(sum, cost)| sum.saturating_add(cost));
        whole.saved += step.saved;
    }
    whole.cached &= step.cached;
    whole.timing.latency_ms = whole.timing.latency_ms.saturating_add(step.timing.latency_ms);
    whole.timing.retries = whole.timing.retries.saturating_add(step.timing.retries);
    whole.tool_uses.extend(step.tool_uses);
    whole.finish = step.finish;
    // What an earlier step answered is no answer of the chain.
    whole.output = step.output;
    let named = |message| format!("step `{}`: {message}", of.name);
    whole.error = step.error.map(|error| TrialError { message: named(error.message), ..error });
    if whole.usage.is_none() {
        whole.cost = None;
    }
}
