//! Majority votes.

use crate::support::{TestClient, race};
use bakeoff_race::{Extraction, MajorityEvaluation, VerdictKind};

const MODELS: &str = r#"
    four = { default = "It is 4." }
    also-four = { default = "2 + 2 = 4.0" }
    five = { default = "It is 5" }
    wordy = { default = "It is what it is." }
"#;

fn numbers() -> MajorityEvaluation {
    MajorityEvaluation::new(Extraction::LastNumber)
}

#[tokio::test]
async fn majority_answer_wins_without_needless_calls() {
    let client = TestClient::new(MODELS);
    for (names, winner, kind, calls) in [
        (&["five", "four", "also-four"][..], 1, VerdictKind::Decided, 3),
        (&["four", "also-four", "five"], 0, VerdictKind::Decided, 2),
        (&["four", "four", "four", "five", "five"], 0, VerdictKind::Decided, 3),
        (&["four", "five", "four", "four", "five"], 0, VerdictKind::Decided, 4),
        (&["wordy", "four", "four", "five", "five", "five"], 3, VerdictKind::Decided, 6),
        (&["wordy", "fault-400", "five"], 2, VerdictKind::Decided, 3),
        (&["fault-400", "fault-400", "wordy"], 2, VerdictKind::Unopposed, 3),
        (&["wordy", "five", "five"], 1, VerdictKind::Decided, 3),
        (&["five", "five", "wordy"], 0, VerdictKind::Decided, 2),
    ] {
        let run = race(client.configs(names), numbers()).await;
        let result = run.result();
        assert_eq!((result.selected_index, result.verdict.kind), (winner, kind), "{names:?}");
        assert_eq!(run.loops().len(), calls, "{names:?}");
        assert_eq!(result.evaluation_usage.total(), 0);
    }
}

#[tokio::test]
async fn equal_votes_are_a_tie_for_the_cheapest() {
    let client = TestClient::new(MODELS);
    let configs = vec![
        client.priced("four", "5"),
        client.priced("five", "3"),
        client.priced("four", "4"),
        client.priced("five", "2"),
    ];
    let run = race(configs, numbers()).await;
    let result = run.result();
    assert_eq!(result.verdict.kind, VerdictKind::Tie);
    assert_eq!(result.selected_index, 1, "the first config with the cheapest branch's answer");
    assert_eq!(result.verdict.reasons[..2], ["2 votes for \"4\"", "2 votes for \"5\""]);
    assert!(result.verdict.fallback.clone().unwrap().starts_with("sim.five.4 is cheaper"));
}

#[tokio::test]
async fn answers_without_votes_use_the_fallback() {
    let client = TestClient::new(MODELS);
    let run = race(client.configs(&["wordy", "wordy"]), numbers()).await;
    let verdict = &run.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Unparseable);
    assert_eq!(verdict.reasons[0], "no answer extracted from 2");
    assert!(verdict.fallback.is_some());
}

#[tokio::test]
async fn whole_answers_are_compared_by_default() {
    let client = TestClient::new(
        "a = { default = \"Yes.\" }\nb = { default = \" YES\" }\nc = { default = \"No\" }",
    );
    let run = race(client.configs(&["c", "a", "b"]), MajorityEvaluation::default()).await;
    assert_eq!(run.result().selected_index, 1);
    assert_eq!(run.result().verdict.ranking, [1, 2, 0]);
}
