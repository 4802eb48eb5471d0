//! Replies that nobody can read, and judges that cannot be asked.

use crate::support::{Raced, World, race};
use bakeoff_agent::AgentEvent;
use bakeoff_race::{LlmJudgeEvaluation, Orders, VerdictKind};

/// Two answers and a judge who always replies this, in as many rounds as there are by default.
async fn judged(reply: &str) -> Raced {
    // What is a string in JSON is one in TOML.
    let reply = serde_json::json!(reply);
    let world = World::new(&format!(
        "short = {{ default = \"No.\" }}\nlong = {{ default = \"Yes, and a bit longer.\" }}\nj = {{ default = {reply} }}"
    ));
    race(world.configs(&["long", "short"]), world.judge("j")).await
}

#[tokio::test]
async fn nonsense_is_asked_about_once_more_and_then_stated() {
    for reply in ["1/2", "7", "", "none", "-1", "I prefer response 1 over response 2", "\u{ff12}"] {
        let raced = judged(reply).await;
        let result = raced.result();
        assert_eq!(result.verdict.kind, VerdictKind::Unparseable, "{reply:?}");
        assert_eq!(result.selected_index, 1, "fewer tokens, and not just the first");
        let fallback = result.verdict.fallback.clone().unwrap();
        assert!(fallback.starts_with("sim.short has fewer tokens: "), "{fallback}");
        let unread =
            format!("nobody can tell what the judge means, even when asked again: {reply:?}");
        assert_eq!(result.verdict.reasons, [unread, fallback]);
        assert_eq!(raced.asked("sim.j"), 4, "both orders, and each once more");
        assert!(result.verdict.ballots.iter().all(|b| b.choice.is_none() && b.reply == reply));
        assert_eq!(result.evaluation_usage, raced.usage("sim.j"));
    }
}

#[tokio::test]
async fn a_sentence_that_names_one_response_is_a_vote() {
    // In both orders the first, so the orders disagree.
    let raced = judged("Comparing 2 responses, response 1 is best").await;
    let result = raced.result();
    assert_eq!(result.verdict.kind, VerdictKind::Tie);
    assert_eq!(raced.asked("sim.j"), 6);
    let choices: Vec<Option<usize>> =
        result.verdict.ballots.iter().map(|ballot| ballot.choice).collect();
    assert_eq!(choices, [Some(0), Some(1), Some(0), Some(1), Some(0), Some(1)]);
    assert!(result.verdict.reasons[1].ends_with("Comparing 2 responses, sim.long is best"));
}

#[tokio::test]
async fn the_judge_is_told_what_was_wrong_in_the_same_conversation() {
    let world = World::new(
        r#"
        a = { default = "x [quality 0.2]" }
        b = { default = "y [quality 0.9]" }
        j = { answers = [{ when = "Your reply does not end with the number", answer = "2" }], default = "hm" }
        "#,
    );
    let judge = LlmJudgeEvaluation { orders: Orders::AsGiven, ..world.judge("j") };
    let raced = race(world.configs(&["a", "b"]), judge).await;
    let result = raced.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    let questions = raced.questions("sim.j");
    assert_eq!(questions.len(), 2);
    assert_eq!(
        questions[1],
        "Your reply does not end with the number of one response on a line of its own. Reply with ONLY the response number (e.g., \"1\" or \"2\")."
    );
    let ballots: Vec<(Option<usize>, &str)> =
        result.verdict.ballots.iter().map(|b| (b.choice, b.reply.as_str())).collect();
    assert_eq!(ballots, [(None, "hm"), (Some(1), "2")]);
    // The second loop's prompt has the first question and the reply in it.
    let usages: Vec<u64> = raced
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
async fn a_reply_that_was_cut_off_is_not_read() {
    let world = World::new(
        "a = { default = \"x\" }\nb = { default = \"y\" }\nj = { default = \"12345678\" }",
    );
    let mut judge = LlmJudgeEvaluation { orders: Orders::AsGiven, ..world.judge("j") };
    judge.judge_config.request.max_tokens = Some(1);
    let raced = race(world.configs(&["a", "b"]), judge).await;
    assert_eq!(raced.result().verdict.kind, VerdictKind::Unparseable);
    assert!(raced.questions("sim.j")[1].starts_with("Your reply was cut off before its end."));
}

/// There are no tools for judges, and nobody pays for many turns of being told so.
#[tokio::test]
async fn a_judge_that_calls_tools_is_asked_once_more_and_no_more() {
    let world = World::new(
        r#"
        a = { default = "x [quality 0.2]" }
        b = { default = "y [quality 0.9]" }
        caller = { calls = [{ tool = "look" }, { tool = "look" }, { tool = "look" }], default = "2" }
        "#,
    );
    let judge = LlmJudgeEvaluation { orders: Orders::AsGiven, ..world.judge("caller") };
    let raced = race(world.configs(&["a", "b"]), judge).await;
    let is_turn = |event: &&AgentEvent| match event {
        AgentEvent::TurnStart { loop_id, .. } => loop_id.segment() == "sim.caller",
        _ => false,
    };
    let turns = raced.events.iter().filter(is_turn).count();
    assert_eq!((raced.asked("sim.caller"), turns), (2, 2));
    let verdict = &raced.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Unparseable);
    assert!(verdict.ballots.iter().all(|ballot| ballot.reply.is_empty()), "{verdict:?}");
}

#[tokio::test]
async fn a_judge_that_fails_is_stated_and_never_the_first_by_default() {
    let world = World::new(
        "long = { default = \"A very long answer indeed.\" }\nshort = { default = \"No.\" }",
    );
    let raced = race(world.configs(&["long", "short"]), world.judge("fault-400")).await;
    let result = raced.result();
    assert_eq!(result.verdict.kind, VerdictKind::JudgeFailed);
    assert_eq!(result.selected_index, 1);
    assert!(result.verdict.reasons[0].starts_with("the judge could not be asked: "));
    assert!(result.verdict.fallback.clone().unwrap().starts_with("sim.short has fewer tokens"));
    assert_eq!(result.verdict.ballots.len(), 2, "no second try of a call that failed for good");
    assert!(result.verdict.ballots.iter().all(|ballot| !ballot.reply.is_empty()));
}

#[tokio::test]
async fn equals_in_everything_are_decided_by_their_place() {
    let world = World::new("same = { default = \"Same.\" }");
    let raced = race(world.configs(&["same", "same"]), world.judge("judge")).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (0, VerdictKind::Tie));
    // Two of one name are told apart by their loops.
    assert_eq!(verdict.fallback.as_deref(), Some("sim.same.1 is the first of equals"));
}

/// One order can be read and the other not: nobody has confirmed the vote.
#[tokio::test]
async fn a_vote_that_the_other_order_does_not_confirm_does_not_decide() {
    let world = World::new(
        r#"
        a = { default = "alpha" }
        b = { default = "beta" }
        j = { answers = [{ when = "alpha\n</response_1", answer = "1" }], default = "hm" }
        "#,
    );
    let raced = race(world.configs(&["b", "a"]), world.judge("j")).await;
    let result = raced.result();
    assert_eq!(result.verdict.kind, VerdictKind::Unparseable);
    assert_eq!(result.selected_index, 1);
    assert_eq!(result.verdict.fallback.as_deref(), Some("sim.a was named most often"));
    assert_eq!(raced.asked("sim.j"), 9, "three rounds of two, and one of each asked again");
}
