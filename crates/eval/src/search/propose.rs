//! Combinations proposed by a model. Proposals are evaluated like other combinations.

use super::prices::prices_per_call;
use super::search_run::SearchRun;
use crate::attempt::describe_failure;
use crate::context::TrialContext;
use bakeoff_core::{Message, NanoDollars, Request};
use bakeoff_llm::{CallContext, Model};
use bakeoff_select::{Briefing, Objective, Proposal, Propose, ProposeError};
use std::sync::Mutex;

/// The method with proposals of a model.
pub(super) const PROPOSAL_METHOD: &str = "lm_proposal";

/// Cases in the prompt.
const MAX_CASES: usize = 5;

/// Characters of each case in the prompt.
const MAX_CASE_CHARS: usize = 400;

/// Proposals and the cost of the call.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    /// Absent when the method uses no proposals.
    pub(super) proposals: Option<Vec<Proposal>>,
    pub(super) cost: NanoDollars,
}

/// Requests proposals from the model of `[select]`, if the method uses them. The error is a message for
/// users.
pub(super) async fn request_proposals(
    search: &SearchRun,
    context: &TrialContext,
) -> Result<Proposals, ProposeError> {
    let plan = search.run.suite.select.as_ref();
    let Some((_, model)) = plan.and_then(|plan| plan.proposer.as_ref()) else {
        return Ok(Proposals::default());
    };
    if search.method != PROPOSAL_METHOD {
        return Ok(Proposals::default());
    }
    let proposer = Proposer { context, model, spent: Mutex::default() };
    let briefing = briefing(search);
    let mut proposals = proposer.propose(&briefing).await?;
    proposals.truncate(briefing.max_proposals);
    let cost = proposer.spent.into_inner().unwrap_or_default();
    Ok(Proposals { proposals: Some(proposals), cost })
}

/// Calls the model that proposes.
struct Proposer<'a> {
    context: &'a TrialContext,
    model: &'a Model,
    /// Cost of the call.
    spent: Mutex<NanoDollars>,
}

/// Returns the data of the prompt.
fn briefing(search: &SearchRun) -> Briefing {
    let suite = &search.run.suite;
    let mut briefing = Briefing::new(&search.space);
    for (role, prices) in briefing.roles.iter_mut().zip(prices_per_call(suite)) {
        role.description =
            suite.select.as_ref().and_then(|plan| plan.describe.get(&role.name).cloned());
        for ((_, known), price) in role.candidates.iter_mut().zip(prices) {
            *known = price;
        }
    }
    let shortened =
        |fields: &minijinja::Value| fields.to_string().chars().take(MAX_CASE_CHARS).collect();
    briefing.preview = suite
        .cases
        .iter()
        .filter_map(Result::ok)
        .take(MAX_CASES)
        .map(|case| shortened(&case.fields))
        .collect();
    let Objective { cost_weight, latency_weight, max_cost } = search.options.objective;
    briefing.objective = match (search.options.within, max_cost) {
        (Some(within), _) => format!("the cheapest within {within} points of the best score"),
        (None, Some(max_cost)) => {
            format!("the best score for at most ${} a task", max_cost.as_dollars())
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
            Request { messages: vec![Message::user(prompt(briefing))], ..Request::default() };
        let context = CallContext::default()
            .run(self.context.run)
            .sample("select\0proposal")
            .trial(1)
            .cancel(self.context.abort.clone())
            .stop(self.context.stop.clone());
        let call = self.context.client.call(self.model, request, &context).await;
        let call = call.map_err(|error| ProposeError::new(describe_failure(&error.failure)))?;
        if !call.cached
            && let Ok(mut spent) = self.spent.lock()
        {
            *spent += call.cost.unwrap_or_default();
        }
        parse_proposals(&call.response.text())
    }
}

fn prompt(briefing: &Briefing) -> String {
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

/// Parses the first JSON array of objects in a response.
fn parse_proposals(response: &str) -> Result<Vec<Proposal>, ProposeError> {
    let starts = response.match_indices('[').map(|(start, _)| start);
    let array = |start: usize| {
        let mut values = serde_json::Deserializer::from_str(&response[start..]).into_iter();
        values.next()?.ok()
    };
    starts.filter_map(array).next().ok_or_else(|| {
        ProposeError::new("no JSON array of objects from roles to models in the response")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_found_within_other_text() {
        let proposals = parse_proposals(
            "I thought [about it]:\n```json\n[{\"planner\": \"a\", \"solver\": \"b\"}]\n```\nDone.",
        );
        let proposals = proposals.unwrap();
        assert_eq!(proposals.len(), 1);
        assert!(parse_proposals("no idea").unwrap_err().to_string().contains("no JSON array"));
        assert!(parse_proposals("[1, 2]").is_err());
    }
}
