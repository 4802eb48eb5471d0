//! A model proposes combinations; they are tried, not believed.

use super::prices::per_call;
use super::setup::Search;
use crate::trial::Trials;
use bakeoff_core::{Message, NanoDollars, Request};
use bakeoff_llm::{CallContext, Model, Ordinals};
use bakeoff_select::{Briefing, Objective, Proposal, Propose, ProposeError};
use std::sync::Mutex;

/// Cases that the model is shown.
const SHOWN: usize = 5;

/// Letters of a case that it is shown.
const LETTERS: usize = 400;

/// Asks a model of the suite.
pub(super) struct Proposer<'a> {
    pub(super) trials: &'a Trials,
    pub(super) model: &'a Model,
    /// What the call cost.
    pub(super) spent: Mutex<NanoDollars>,
}

/// What the model is told.
pub(super) fn briefing(search: &Search) -> Briefing {
    let suite = &search.run.suite;
    let mut briefing = Briefing::new(&search.space);
    for (role, prices) in briefing.roles.iter_mut().zip(per_call(suite)) {
        role.description =
            suite.select.as_ref().and_then(|plan| plan.describe.get(&role.name).cloned());
        for ((_, known), price) in role.candidates.iter_mut().zip(prices) {
            *known = price;
        }
    }
    let shown = |fields: &minijinja::Value| fields.to_string().chars().take(LETTERS).collect();
    briefing.preview = suite
        .cases
        .iter()
        .filter_map(Result::ok)
        .take(SHOWN)
        .map(|case| shown(&case.fields))
        .collect();
    let Objective { cost_weight, latency_weight, max_cost } = search.options.objective;
    briefing.objective = match (search.options.within, max_cost) {
        (Some(within), _) => format!("the cheapest within {within} points of the best score"),
        (None, Some(most)) => {
            format!("the best score for at most ${} a task", most.as_dollars())
        }
        (None, None) if cost_weight > 0.0 || latency_weight > 0.0 => format!(
            "score, less {cost_weight} for the dearest and {latency_weight} for the slowest"
        ),
        (None, None) => "the best score".to_owned(),
    };
    briefing
}

#[async_trait::async_trait]
impl Propose for Proposer<'_> {
    async fn propose(&self, briefing: &Briefing) -> Result<Vec<Proposal>, ProposeError> {
        let request =
            Request { messages: vec![Message::user(question(briefing))], ..Request::default() };
        let context = CallContext {
            run: self.trials.run,
            sample: "select\0proposal",
            trial: 1,
            ordinals: Ordinals::default(),
            cancel: self.trials.abort.clone(),
            stop: self.trials.stop.clone(),
            on_retry: None,
            on_delta: None,
        };
        let call = self.trials.client.call(self.model, request, &context).await;
        let call =
            call.map_err(|error| ProposeError::new(crate::attempt::describe(&error.failure)))?;
        if !call.cached
            && let Ok(mut spent) = self.spent.lock()
        {
            *spent += call.cost.unwrap_or_default();
        }
        read(&call.response.text()).map_err(ProposeError::new)
    }
}

fn question(briefing: &Briefing) -> String {
    let mut text = String::from(
        "An agent has roles, and each role is filled by one of several models. Propose the \
         combinations that are most likely to be the best.\n",
    );
    for role in &briefing.roles {
        text.push_str(&format!("\nRole `{}`", role.name));
        if let Some(description) = &role.description {
            text.push_str(&format!(": {description}"));
        }
        for (name, price) in &role.candidates {
            let price = price.map_or(String::new(), |price| {
                format!(" (${:.6} for 1000 tokens in and 1000 out)", price.as_dollars())
            });
            text.push_str(&format!("\n- {name}{price}"));
        }
        text.push('\n');
    }
    if !briefing.preview.is_empty() {
        text.push_str("\nSome of the tasks:\n");
        briefing.preview.iter().for_each(|case| text.push_str(&format!("- {case}\n")));
    }
    text.push_str(&format!(
        "\nWanted: {}.\n\nAnswer with a JSON array of at most {} objects, the most promising \
         first; each object has a key for each role and the candidate's name as its value. Nothing \
         else.",
        briefing.objective, briefing.max_proposals
    ));
    text
}

/// The array in the answer, whatever stands around it.
fn read(answer: &str) -> Result<Vec<Proposal>, String> {
    let starts = answer.match_indices('[').map(|(place, _)| place);
    let array = |start: usize| {
        let mut values = serde_json::Deserializer::from_str(&answer[start..]).into_iter();
        values.next()?.ok()
    };
    starts
        .filter_map(array)
        .next()
        .ok_or_else(|| "the answer holds no JSON array of objects from roles to models".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_is_found_whatever_stands_around_it() {
        let proposals = read(
            "I thought [about it]:\n```json\n[{\"planner\": \"a\", \"solver\": \"b\"}]\n```\nDone.",
        );
        let proposals = proposals.unwrap();
        assert_eq!(proposals.len(), 1);
        assert!(read("no idea").unwrap_err().contains("no JSON array"));
        assert!(read("[1, 2]").is_err());
    }
}
