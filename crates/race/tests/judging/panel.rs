//! Several judges.

use crate::support::{World, race};
use bakeoff_race::{PanelEvaluation, RaceError, VerdictKind};

const PERSONAS: &str = r#"
    poor = { default = "Poor. [quality 0.20]" }
    good = { default = "Good. [quality 0.80]" }
    left = { bias = 10.0 }
    contrary = { answers = [{ when = "Poor. [quality 0.20]\n</response_1", answer = "1" }], default = "2" }
    mumbling = { default = "hm" }
"#;

fn panel(world: &World, judges: &[&str]) -> PanelEvaluation {
    PanelEvaluation { judges: judges.iter().map(|name| world.judge(name)).collect() }
}

#[tokio::test]
async fn most_judges_decide() {
    let world = World::new(PERSONAS);
    let strategy = panel(&world, &["judge", "contrary", "judge"]);
    let raced = race(world.configs(&["poor", "good"]), strategy).await;
    let result = raced.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(result.verdict.strategy, "panel");
    assert_eq!(result.verdict.reasons[0], "votes of 3 judges: sim.poor 1, sim.good 2");
    assert_eq!(result.verdict.reasons[2], "sim.contrary prefers sim.poor");
    assert_eq!(result.verdict.ballots.len(), 6);
    let mut sum = raced.usage("sim.judge");
    sum += raced.usage("sim.contrary");
    assert_eq!(result.evaluation_usage, sum);
}

#[tokio::test]
async fn who_depends_on_the_order_or_says_nothing_does_not_vote() {
    let world = World::new(PERSONAS);
    let strategy = panel(&world, &["left", "mumbling", "fault-400", "judge"]);
    let raced = race(world.configs(&["poor", "good"]), strategy).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (1, VerdictKind::Decided));
    let begins = |start: &str| verdict.reasons.iter().any(|reason| reason.starts_with(start));
    assert!(begins("sim.left does not vote: its preference depends on the order"));
    assert!(begins("sim.mumbling does not vote: nobody can tell what it means"));
    assert!(begins("sim.fault-400 could not be asked: "));
}

#[tokio::test]
async fn equally_many_votes_are_a_tie_and_the_cheaper_wins() {
    let world = World::new(PERSONAS);
    let configs = vec![world.priced("poor", "1"), world.priced("good", "9")];
    let raced = race(configs, panel(&world, &["judge", "contrary"])).await;
    let verdict = &raced.result().verdict;
    assert_eq!((raced.result().selected_index, verdict.kind), (0, VerdictKind::Tie));
    assert!(verdict.fallback.clone().unwrap().starts_with("sim.poor is cheaper"));
}

#[tokio::test]
async fn a_panel_that_says_nothing_is_stated() {
    let world = World::new(PERSONAS);
    for (judges, kind) in [
        (&["fault-400", "fault-400"][..], VerdictKind::JudgeFailed),
        (&["mumbling", "fault-400"], VerdictKind::Unparseable),
        (&["left", "mumbling"], VerdictKind::Tie),
    ] {
        let raced = race(world.configs(&["poor", "good"]), panel(&world, judges)).await;
        assert_eq!(raced.result().verdict.kind, kind, "{judges:?}");
        assert!(raced.result().verdict.fallback.is_some());
    }
}

#[tokio::test]
async fn a_judge_of_its_own_kind_is_warned_about() {
    let world = World::new(PERSONAS);
    let raced =
        race(world.configs(&["poor-7b", "good"]), panel(&world, &["poor-70b", "judge"])).await;
    let warnings: Vec<&String> = raced
        .result()
        .verdict
        .reasons
        .iter()
        .filter(|reason| reason.starts_with("warning"))
        .collect();
    assert_eq!(
        warnings,
        [
            "warning: sim.poor-70b is of the same family as sim.poor-7b, and models like their own kind"
        ]
    );
}

/// Judges of one make err alike, so that two of them are hardly more than one.
#[tokio::test]
async fn judges_of_one_kind_are_warned_about() {
    let world = World::new(PERSONAS);
    let judges = ["judge-7b", "left", "judge-70b", "left"];
    let raced = race(world.configs(&["poor", "good"]), panel(&world, &judges)).await;
    let reasons = &raced.result().verdict.reasons;
    let warnings: Vec<&String> =
        reasons.iter().filter(|reason| reason.starts_with("warning")).collect();
    assert_eq!(
        warnings,
        [
            "warning: the judges sim.judge-7b and sim.judge-70b are of one family, and err alike",
            "warning: the judges sim.left and sim.left are of one family, and err alike",
        ]
    );
}

#[tokio::test]
async fn the_same_panel_asks_in_the_same_loops_every_time() {
    let world = World::new(PERSONAS);
    let orders = async || {
        let strategy = panel(&world, &["left", "mumbling", "left"]);
        let raced = race(world.configs(&["poor", "good", "poor"]), strategy).await;
        let ballots = raced.result().verdict.ballots.clone();
        ballots.into_iter().map(|b| (b.loop_id.number(), b.order, b.choice)).collect::<Vec<_>>()
    };
    let first = orders().await;
    assert_eq!(first, orders().await);
    assert!(first.len() > 12);
}

#[tokio::test]
async fn a_panel_without_judges_is_refused() {
    let world = World::new(PERSONAS);
    let raced = race(world.configs(&["poor", "good"]), panel(&world, &[])).await;
    let Err(RaceError::Strategy { reason, .. }) = &raced.result else { panic!("no judges") };
    assert_eq!(reason, "there are no judges");
    assert!(raced.events.is_empty());
}
