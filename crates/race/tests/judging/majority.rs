//! What most say.

use crate::support::{World, race};
use bakeoff_race::{Extraction, MajorityEvaluation, VerdictKind};

const PERSONAS: &str = r#"
    four = { default = "It is 4." }
    also-four = { default = "2 + 2 = 4.0" }
    five = { default = "It is 5" }
    wordy = { default = "It is what it is." }
"#;

fn numbers() -> MajorityEvaluation {
    MajorityEvaluation::new(Extraction::LastNumber)
}

#[tokio::test]
async fn the_answer_of_most_wins_and_nobody_is_asked_in_vain() {
    let world = World::new(PERSONAS);
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
        let raced = race(world.configs(names), numbers()).await;
        let result = raced.result();
        assert_eq!((result.selected_index, result.verdict.kind), (winner, kind), "{names:?}");
        assert_eq!(raced.loops().len(), calls, "{names:?}");
        assert_eq!(result.evaluation_usage.total(), 0);
    }
}

#[tokio::test]
async fn equally_many_votes_are_a_tie_for_the_cheapest() {
    let world = World::new(PERSONAS);
    let configs = vec![
        world.priced("four", "5"),
        world.priced("five", "3"),
        world.priced("four", "4"),
        world.priced("five", "2"),
    ];
    let raced = race(configs, numbers()).await;
    let result = raced.result();
    assert_eq!(result.verdict.kind, VerdictKind::Tie);
    assert_eq!(result.selected_index, 1, "the first who gives the cheapest one's answer");
    assert_eq!(result.verdict.reasons[..2], ["2 votes for \"4\"", "2 votes for \"5\""]);
    assert!(result.verdict.fallback.clone().unwrap().starts_with("sim.five.4 is cheaper"));
}

#[tokio::test]
async fn answers_without_a_vote_leave_it_to_the_fallback() {
    let world = World::new(PERSONAS);
    let raced = race(world.configs(&["wordy", "wordy"]), numbers()).await;
    let verdict = &raced.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Unparseable);
    assert_eq!(verdict.reasons[0], "no answer could be read from 2");
    assert!(verdict.fallback.is_some());
}

#[tokio::test]
async fn whole_texts_vote_when_nothing_else_is_said() {
    let world = World::new(
        "a = { default = \"Yes.\" }\nb = { default = \" YES\" }\nc = { default = \"No\" }",
    );
    let raced = race(world.configs(&["c", "a", "b"]), MajorityEvaluation::default()).await;
    assert_eq!(raced.result().selected_index, 1);
    assert_eq!(raced.result().verdict.ranking, [1, 2, 0]);
}
