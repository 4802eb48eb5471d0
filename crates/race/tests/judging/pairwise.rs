//! Two at a time.

use crate::support::{World, race};
use bakeoff_check::Fence;
use bakeoff_race::{PairwiseEvaluation, VerdictKind};

fn personas() -> String {
    let one = |n: u32| format!("q{n} = {{ default = \"Answer {n}. [quality 0.{n}0]\" }}\n");
    (1..=9).map(one).collect::<String>()
        + r#"
        left = { bias = 10.0 }
        mumbling = { default = "hm" }
        rock = { default = "rock" }
        paper = { default = "paper" }
        scissors = { default = "scissors" }
        "#
        + &game()
}

/// A judge who knows the rules: it says 1 when the winner of a pair stands first, else 2.
fn game() -> String {
    let rule = |(winner, loser): (&str, &str)| {
        let fence = Fence::of(&["", "What is it?", winner, loser]);
        // What is a string in JSON is one in TOML.
        let when = serde_json::json!(fence.around("response_1", winner));
        format!("{{ when = {when}, answer = \"1\" }}")
    };
    let rules = [("rock", "scissors"), ("paper", "rock"), ("scissors", "paper")].map(rule);
    format!("game = {{ answers = [{}], default = \"2\" }}", rules.join(", "))
}

#[tokio::test]
async fn all_pairs_are_compared_and_ranked() {
    let world = World::new(&personas());
    let strategy = PairwiseEvaluation { judge: world.judge("judge") };
    let raced = race(world.configs(&["q2", "q5", "q1", "q4"]), strategy).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(verdict.ranking, [1, 3, 0, 2]);
    assert_eq!(verdict.strategy, "pairwise");
    assert_eq!(raced.asked("sim.judge"), 12, "six pairs in both orders");
    assert_eq!(raced.result().evaluation_usage, raced.usage("sim.judge"));
    assert!(verdict.reasons[0].starts_with("strengths: sim.q5 "), "{:?}", verdict.reasons);
    let orders: std::collections::HashSet<&[usize]> =
        verdict.ballots.iter().map(|ballot| &ballot.order[..]).collect();
    assert_eq!(orders.len(), 12, "each pair once in each order");
}

#[tokio::test]
async fn pairs_that_depend_on_the_order_are_ties() {
    let world = World::new(&personas());
    let configs = vec![world.priced("q9", "3"), world.priced("q1", "1"), world.priced("q5", "2")];
    let raced = race(configs, PairwiseEvaluation { judge: world.judge("left") }).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (1, VerdictKind::Tie));
    assert_eq!(verdict.ranking, [1, 2, 0], "by price");
    assert!(verdict.fallback.clone().unwrap().starts_with("sim.q1 is cheaper"));
    assert!(verdict.reasons.contains(
        &"of 3 pairs, 3 are ties, 0 cannot be read and 0 could not be asked about".to_owned()
    ));
}

#[tokio::test]
async fn many_meet_in_stages() {
    let world = World::new(&personas());
    let names = ["q3", "q1", "q9", "q2", "q5", "q4", "q8"];
    let raced =
        race(world.configs(&names), PairwiseEvaluation { judge: world.judge("judge") }).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (2, VerdictKind::Decided));
    assert_eq!(raced.asked("sim.judge"), 2 * 6, "one pair less than there are branches");
    assert_eq!(verdict.ranking.len(), 7);
    assert_eq!(verdict.ranking[0], 2);
}

/// A judge who looks at the place alone decides nothing, however many stages there are.
#[tokio::test]
async fn ties_on_the_way_to_the_top_are_not_hidden() {
    let world = World::new(&personas());
    let names = ["q3", "q1", "q9", "q2", "q5", "q4", "q8"];
    let priced = (1..).zip(names).map(|(price, name)| world.priced(name, &price.to_string()));
    let judge = world.judge("left");
    let raced = race(priced.collect(), PairwiseEvaluation { judge }).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (0, VerdictKind::Tie));
    let fallback = verdict.fallback.clone().unwrap();
    let pairs: Vec<&str> = fallback.split("; ").collect();
    assert_eq!(pairs.len(), 3, "{fallback}");
    assert!(pairs[0].starts_with("against sim.q1, sim.q3 is cheaper: $0.0000"), "{fallback}");
    assert!(verdict.reasons.contains(&fallback), "{:?}", verdict.reasons);
    assert!(verdict.reasons.contains(
        &"of 6 pairs, 6 are ties, 0 cannot be read and 0 could not be asked about".to_owned()
    ));

    let judge = world.judge("mumbling");
    let raced = race(world.configs(&names), PairwiseEvaluation { judge }).await;
    assert_eq!(raced.result().verdict.kind, VerdictKind::Unparseable);
}

/// Ties among those who lose anyway say nothing about the winner.
#[tokio::test]
async fn ties_beside_the_way_to_the_top_do_not_matter() {
    let world = World::new(&personas());
    let names = ["q2", "q2", "q9", "q1", "q5", "q4", "q8"];
    let judge = world.judge("judge");
    let raced = race(world.configs(&names), PairwiseEvaluation { judge }).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (2, VerdictKind::Decided));
    assert_eq!(verdict.fallback, None);
    assert!(verdict.reasons[1].starts_with("of 6 pairs, 1 are ties"), "{:?}", verdict.reasons);
}

#[tokio::test]
async fn a_judge_that_fails_ends_the_stages() {
    let world = World::new(&personas());
    let names = ["q3", "q1", "q9", "q2", "q5", "q4", "q8"];
    let raced =
        race(world.configs(&names), PairwiseEvaluation { judge: world.judge("fault-400") }).await;
    let verdict = &raced.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::JudgeFailed);
    assert_eq!(verdict.ballots.len(), 6, "the first stage");
    assert!(verdict.fallback.is_some());
    let raced =
        race(world.configs(&names[..3]), PairwiseEvaluation { judge: world.judge("mumbling") })
            .await;
    assert_eq!(raced.result().verdict.kind, VerdictKind::Unparseable);
}

/// Preferences that go round in a circle are said to, and nobody is best.
#[tokio::test]
async fn circles_are_reported() {
    let world = World::new(&personas());
    let judge = world.judge("game");
    let raced =
        race(world.configs(&["rock", "paper", "scissors"]), PairwiseEvaluation { judge }).await;
    let verdict = &raced.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Tie);
    let circle = "a circle, in which each beats another: sim.rock, sim.paper and sim.scissors";
    assert!(verdict.reasons.contains(&circle.to_owned()), "{:?}", verdict.reasons);
}
