//! Pairwise comparison.

use crate::support::{TestClient, race};
use bakeoff_check::judge::Fence;
use bakeoff_race::{PairwiseEvaluation, VerdictKind};

fn models() -> String {
    let one = |n: u32| format!("q{n} = {{ default = \"Answer {n}. [quality 0.{n}0]\" }}\n");
    (1..=9).map(one).collect::<String>()
        + r#"
        left = { bias = 10.0 }
        unclear = { default = "hm" }
        rock = { default = "rock" }
        paper = { default = "paper" }
        scissors = { default = "scissors" }
        "#
        + &game()
}

/// Defines a judge of rock, paper, scissors: it votes 1 if the winner of a pair is first, else 2.
fn game() -> String {
    let rule = |(winner, loser): (&str, &str)| {
        let fence = Fence::of(&["", "What is it?", winner, loser]);
        // A JSON string is also a TOML string.
        let when = serde_json::json!(fence.around("response_1", winner));
        format!("{{ when = {when}, answer = \"1\" }}")
    };
    let rules = [("rock", "scissors"), ("paper", "rock"), ("scissors", "paper")].map(rule);
    format!("game = {{ answers = [{}], default = \"2\" }}", rules.join(", "))
}

#[tokio::test]
async fn round_robin_compares_and_ranks_all_pairs() {
    let client = TestClient::new(&models());
    let strategy = PairwiseEvaluation { judge: client.judge("judge") };
    let run = race(client.configs(&["q2", "q5", "q1", "q4"]), strategy).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(verdict.ranking, [1, 3, 0, 2]);
    assert_eq!(verdict.strategy, "pairwise");
    assert_eq!(run.call_count("sim.judge"), 12, "six pairs in both orders");
    assert_eq!(run.result().evaluation_usage, run.usage("sim.judge"));
    assert!(verdict.reasons[0].starts_with("strengths: sim.q5 "), "{:?}", verdict.reasons);
    let orders: std::collections::HashSet<&[usize]> =
        verdict.ballots.iter().map(|ballot| &ballot.order[..]).collect();
    assert_eq!(orders.len(), 12, "each pair once in each order");
}

#[tokio::test]
async fn order_dependent_pairs_are_ties() {
    let client = TestClient::new(&models());
    let configs =
        vec![client.priced("q9", "3"), client.priced("q1", "1"), client.priced("q5", "2")];
    let run = race(configs, PairwiseEvaluation { judge: client.judge("left") }).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (1, VerdictKind::Tie));
    assert_eq!(verdict.ranking, [1, 2, 0], "by price");
    assert!(verdict.fallback.clone().unwrap().starts_with("sim.q1 is cheaper"));
    assert!(verdict.reasons.contains(
        &"of 3 pairs, 3 are ties, 0 have unparseable replies and 0 have failed calls".to_owned()
    ));
}

#[tokio::test]
async fn more_than_six_branches_play_a_knockout() {
    let client = TestClient::new(&models());
    let names = ["q3", "q1", "q9", "q2", "q5", "q4", "q8"];
    let run =
        race(client.configs(&names), PairwiseEvaluation { judge: client.judge("judge") }).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (2, VerdictKind::Decided));
    assert_eq!(run.call_count("sim.judge"), 2 * 6, "one pair fewer than branches");
    assert_eq!(verdict.ranking.len(), 7);
    assert_eq!(verdict.ranking[0], 2);
}

/// A judge with full position bias decides no pair in any stage.
#[tokio::test]
async fn tie_breaks_on_the_winners_path_make_the_verdict_a_tie() {
    let client = TestClient::new(&models());
    let names = ["q3", "q1", "q9", "q2", "q5", "q4", "q8"];
    let priced = (1..).zip(names).map(|(price, name)| client.priced(name, &price.to_string()));
    let judge = client.judge("left");
    let run = race(priced.collect(), PairwiseEvaluation { judge }).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (0, VerdictKind::Tie));
    let fallback = verdict.fallback.clone().unwrap();
    let pairs: Vec<&str> = fallback.split("; ").collect();
    assert_eq!(pairs.len(), 3, "{fallback}");
    assert!(pairs[0].starts_with("against sim.q1, sim.q3 is cheaper: $0.0000"), "{fallback}");
    assert!(verdict.reasons.contains(&fallback), "{:?}", verdict.reasons);
    assert!(verdict.reasons.contains(
        &"of 6 pairs, 6 are ties, 0 have unparseable replies and 0 have failed calls".to_owned()
    ));

    let judge = client.judge("unclear");
    let run = race(client.configs(&names), PairwiseEvaluation { judge }).await;
    assert_eq!(run.result().verdict.kind, VerdictKind::Unparseable);
}

/// Ties among losing branches do not affect the winner.
#[tokio::test]
async fn tie_breaks_off_the_winners_path_do_not_matter() {
    let client = TestClient::new(&models());
    let names = ["q2", "q2", "q9", "q1", "q5", "q4", "q8"];
    let judge = client.judge("judge");
    let run = race(client.configs(&names), PairwiseEvaluation { judge }).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (2, VerdictKind::Decided));
    assert_eq!(verdict.fallback, None);
    assert!(verdict.reasons[1].starts_with("of 6 pairs, 1 are ties"), "{:?}", verdict.reasons);
}

#[tokio::test]
async fn failed_judge_ends_the_knockout() {
    let client = TestClient::new(&models());
    let names = ["q3", "q1", "q9", "q2", "q5", "q4", "q8"];
    let run =
        race(client.configs(&names), PairwiseEvaluation { judge: client.judge("fault-400") }).await;
    let verdict = &run.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::JudgeFailed);
    assert_eq!(verdict.ballots.len(), 6, "the first stage");
    assert!(verdict.fallback.is_some());
    let run =
        race(client.configs(&names[..3]), PairwiseEvaluation { judge: client.judge("unclear") })
            .await;
    assert_eq!(run.result().verdict.kind, VerdictKind::Unparseable);
}

/// Cyclic preferences are reported and have no best branch.
#[tokio::test]
async fn cyclic_preferences_are_reported() {
    let client = TestClient::new(&models());
    let judge = client.judge("game");
    let run =
        race(client.configs(&["rock", "paper", "scissors"]), PairwiseEvaluation { judge }).await;
    let verdict = &run.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Tie);
    let cycle = "cyclic preferences: sim.rock, sim.paper and sim.scissors";
    assert!(verdict.reasons.contains(&cycle.to_owned()), "{:?}", verdict.reasons);
}
