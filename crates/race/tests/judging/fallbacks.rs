//! Unparseable replies and failed calls of judges.

use crate::support::{RaceRun, TestClient, race};
use bakeoff_agent::AgentEvent;
use bakeoff_race::{
    EvaluationStrategy, LlmJudgeEvaluation, Orders, PairwiseEvaluation, PanelEvaluation,
    VerdictKind,
};

/// Runs a race of two answers with a judge that always gives this reply.
async fn judged_with(reply: &str) -> RaceRun {
    // A JSON string is also a TOML string.
    let reply = serde_json::json!(reply);
    let client = TestClient::new(&format!(
        "short = {{ default = \"No.\" }}\nlong = {{ default = \"Yes, and a bit longer.\" }}\nj = {{ default = {reply} }}"
    ));
    race(client.configs(&["long", "short"]), client.judge("j")).await
}

#[tokio::test]
async fn unparseable_reply_is_reasked_once_and_then_reported() {
    for reply in ["1/2", "7", "", "none", "-1", "I prefer response 1 over response 2", "\u{ff12}"] {
        let run = judged_with(reply).await;
        let result = run.result();
        assert_eq!(result.verdict.kind, VerdictKind::Unparseable, "{reply:?}");
        assert_eq!(result.selected_index, 1, "fewer tokens, not the first index");
        let fallback = result.verdict.fallback.clone().unwrap();
        assert!(fallback.starts_with("sim.short has fewer tokens: "), "{fallback}");
        let unparseable = format!("judge reply unparseable after re-asking: {reply:?}");
        assert_eq!(result.verdict.reasons, [unparseable, fallback]);
        assert_eq!(run.call_count("sim.j"), 4, "both orders, each re-asked once");
        assert!(result.verdict.ballots.iter().all(|b| b.choice.is_none() && b.reply == reply));
        assert_eq!(result.evaluation_usage, run.usage("sim.j"));
    }
}

#[tokio::test]
async fn sentence_that_claims_one_response_is_a_vote() {
    // Response 1 in both orders, so the orders disagree.
    let run = judged_with("Comparing 2 responses, response 1 is best").await;
    let result = run.result();
    assert_eq!(result.verdict.kind, VerdictKind::Tie);
    assert_eq!(run.call_count("sim.j"), 6);
    let choices: Vec<Option<usize>> =
        result.verdict.ballots.iter().map(|ballot| ballot.choice).collect();
    assert_eq!(choices, [Some(0), Some(1), Some(0), Some(1), Some(0), Some(1)]);
    assert!(result.verdict.reasons[1].ends_with("Comparing 2 responses, sim.long is best"));
}

#[tokio::test]
async fn reask_states_the_problem_in_the_same_conversation() {
    let client = TestClient::new(
        r#"
        a = { default = "x [quality 0.2]" }
        b = { default = "y [quality 0.9]" }
        j = { answers = [{ when = "Your reply does not end with the number", answer = "2" }], default = "hm" }
        "#,
    );
    let judge = client.judge("j").orders(Orders::AsGiven);
    let run = race(client.configs(&["a", "b"]), judge).await;
    let result = run.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    let questions = run.prompts("sim.j");
    assert_eq!(questions.len(), 2);
    assert_eq!(
        questions[1],
        "Your reply does not end with the number of one response on a line of its own. Reply with ONLY the response number (e.g., \"1\" or \"2\")."
    );
    let ballots: Vec<(Option<usize>, &str)> =
        result.verdict.ballots.iter().map(|b| (b.choice, b.reply.as_str())).collect();
    assert_eq!(ballots, [(None, "hm"), (Some(1), "2")]);
    // The second loop's prompt has the first question and the reply in it.
    let usages: Vec<u64> = run
        .events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::AgentEnd { loop_id, usage, .. } if loop_id.segment() == "sim.j" => {
                Some(usage.input)
            }
            _ => None,
        })
        .collect();
    assert!(usages[1] > usages[0], "{usages:?}");
}

#[tokio::test]
async fn truncated_reply_is_not_parsed() {
    let client = TestClient::new(
        "a = { default = \"x\" }\nb = { default = \"y\" }\nj = { default = \"12345678\" }",
    );
    let mut judge = client.judge("j").orders(Orders::AsGiven);
    judge.judge_config.request.max_tokens = Some(1);
    let run = race(client.configs(&["a", "b"]), judge).await;
    assert_eq!(run.result().verdict.kind, VerdictKind::Unparseable);
    assert!(run.prompts("sim.j")[1].starts_with("Your reply was cut off before its end."));
}

/// Judges have no tools; a judge that calls one does not get further turns.
#[tokio::test]
async fn judge_that_calls_tools_is_reasked_only_once() {
    let client = TestClient::new(
        r#"
        a = { default = "x [quality 0.2]" }
        b = { default = "y [quality 0.9]" }
        caller = { calls = [{ tool = "look" }, { tool = "look" }, { tool = "look" }], default = "2" }
        "#,
    );
    let judge = client.judge("caller").orders(Orders::AsGiven);
    let run = race(client.configs(&["a", "b"]), judge).await;
    let is_turn = |event: &&AgentEvent| match event {
        AgentEvent::TurnStart { loop_id, .. } => loop_id.segment() == "sim.caller",
        _ => false,
    };
    let turns = run.events.iter().filter(is_turn).count();
    assert_eq!((run.call_count("sim.caller"), turns), (2, 2));
    let verdict = &run.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Unparseable);
    assert!(verdict.ballots.iter().all(|ballot| ballot.reply.is_empty()), "{verdict:?}");
}

#[tokio::test]
async fn failed_judge_call_is_reported_and_does_not_select_the_first() {
    let client = TestClient::new(
        "long = { default = \"A very long answer indeed.\" }\nshort = { default = \"No.\" }",
    );
    let run = race(client.configs(&["long", "short"]), client.judge("fault-400")).await;
    let result = run.result();
    assert_eq!(result.verdict.kind, VerdictKind::JudgeFailed);
    assert_eq!(result.selected_index, 1);
    assert!(result.verdict.reasons[0].starts_with("judge call failed: "));
    assert!(result.verdict.fallback.clone().unwrap().starts_with("sim.short has fewer tokens"));
    assert_eq!(result.verdict.ballots.len(), 2, "a permanent failure is not re-asked");
    assert!(result.verdict.ballots.iter().all(|ballot| !ballot.reply.is_empty()));
}

/// Expects that the verdict of a race names a budget that covers the branches, which are free, but not the judge.
async fn expect_budget_verdict<S: EvaluationStrategy + 'static>(
    strategy: impl FnOnce(LlmJudgeEvaluation) -> S,
) {
    let models = "long = { default = \"A very long answer.\" }\nshort = { default = \"No.\" }";
    let client = TestClient::within(models, "1");
    let judge = LlmJudgeEvaluation::new(client.priced("judge", "1000000"));
    let run = race(client.configs(&["long", "short"]), strategy(judge)).await;
    let verdict = &run.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::BudgetExhausted, "{verdict:?}");
    let is_named = |reason: &String| {
        reason.contains("not called: the budget is exhausted: $0.00 of $1.00 spent")
    };
    assert!(verdict.reasons.iter().any(is_named), "{verdict:?}");
    assert!(verdict.fallback.is_some());
}

#[tokio::test]
async fn budget_that_does_not_cover_the_judge_is_named() {
    expect_budget_verdict(|judge| judge).await;
    expect_budget_verdict(|judge| PairwiseEvaluation { judge }).await;
    expect_budget_verdict(|judge| PanelEvaluation::new(vec![judge.clone(), judge])).await;
}

#[tokio::test]
async fn identical_branches_are_decided_by_config_order() {
    let client = TestClient::new("same = { default = \"Same.\" }");
    let run = race(client.configs(&["same", "same"]), client.judge("judge")).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (0, VerdictKind::Tie));
    // Branches with the same name are distinguished by loop number.
    assert_eq!(verdict.fallback.as_deref(), Some("sim.same.1 is first in config order"));
}

/// The reply is parseable in one order only, so the vote is not confirmed.
#[tokio::test]
async fn vote_without_confirmation_by_the_other_order_does_not_decide() {
    let client = TestClient::new(
        r#"
        a = { default = "alpha" }
        b = { default = "beta" }
        j = { answers = [{ when = "alpha\n</response_1", answer = "1" }], default = "hm" }
        "#,
    );
    let run = race(client.configs(&["b", "a"]), client.judge("j")).await;
    let result = run.result();
    assert_eq!(result.verdict.kind, VerdictKind::Unparseable);
    assert_eq!(result.selected_index, 1);
    assert_eq!(result.verdict.fallback.as_deref(), Some("sim.a has the most votes"));
    assert_eq!(run.call_count("sim.j"), 9, "three rounds of two, one of each re-asked");
}
