//! Panels of judges.

use crate::support::{TestClient, race};
use bakeoff_race::{PanelEvaluation, RaceError, VerdictKind};

const MODELS: &str = r#"
    poor = { default = "Poor. [quality 0.20]" }
    good = { default = "Good. [quality 0.80]" }
    left = { bias = 10.0 }
    contrary = { answers = [{ when = "Poor. [quality 0.20]\n</response_1", answer = "1" }], default = "2" }
    unclear = { default = "hm" }
"#;

fn panel(client: &TestClient, judges: &[&str]) -> PanelEvaluation {
    PanelEvaluation::new(judges.iter().map(|name| client.judge(name)).collect())
}

#[tokio::test]
async fn majority_of_judges_decides() {
    let client = TestClient::new(MODELS);
    let strategy = panel(&client, &["judge", "contrary", "judge"]);
    let run = race(client.configs(&["poor", "good"]), strategy).await;
    let result = run.result();
    assert_eq!((result.selected_index, result.verdict.kind), (1, VerdictKind::Decided));
    assert_eq!(result.verdict.strategy, "panel");
    assert_eq!(result.verdict.reasons[0], "votes of 3 judges: sim.poor 1, sim.good 2");
    assert_eq!(result.verdict.reasons[2], "sim.contrary prefers sim.poor");
    assert_eq!(result.verdict.ballots.len(), 6);
    let mut sum = run.usage("sim.judge");
    sum += run.usage("sim.contrary");
    assert_eq!(result.evaluation_usage, sum);
}

#[tokio::test]
async fn judge_without_a_consistent_vote_does_not_count() {
    let client = TestClient::new(MODELS);
    let strategy = panel(&client, &["left", "unclear", "fault-400", "judge"]).quorum(1);
    let run = race(client.configs(&["poor", "good"]), strategy).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (1, VerdictKind::Decided));
    let has_reason = |start: &str| verdict.reasons.iter().any(|reason| reason.starts_with(start));
    assert!(has_reason("sim.left does not vote: its preference depends on the order"));
    assert!(has_reason("sim.unclear does not vote: reply unparseable after re-asking"));
    assert!(has_reason("sim.fault-400 does not vote: call failed: "));
}

#[tokio::test]
async fn panel_without_a_quorum_does_not_decide() {
    let client = TestClient::new(MODELS);
    for (judges, quorum, kind) in [
        (&["judge", "unclear", "fault-400"][..], None, VerdictKind::NoQuorum),
        (&["judge", "judge", "fault-400"], None, VerdictKind::Decided),
        (&["judge", "judge", "fault-400"], Some(3), VerdictKind::NoQuorum),
        (&["judge", "unclear"], None, VerdictKind::NoQuorum),
        (&["judge", "unclear"], Some(1), VerdictKind::Decided),
        // Two judges have compared the answers and prefer neither.
        (&["judge", "left", "left"], None, VerdictKind::Tie),
    ] {
        let mut strategy = panel(&client, judges);
        strategy.quorum = quorum;
        let run = race(client.configs(&["poor", "good"]), strategy).await;
        let verdict = &run.result().verdict;
        assert_eq!(verdict.kind, kind, "{judges:?} {quorum:?}");
        assert_eq!((run.result().selected_index, &verdict.ranking[..]), (1, &[1][..]));
        let is_decided = kind == VerdictKind::Decided;
        let fallback = (!is_decided).then_some("sim.good has the most votes");
        assert_eq!(verdict.fallback.as_deref(), fallback);
        let has_reason = verdict.reasons.iter().any(|reason| reason.starts_with("only "));
        assert_eq!(has_reason, kind == VerdictKind::NoQuorum, "{:?}", verdict.reasons);
    }
}

#[tokio::test]
async fn quorum_that_cannot_be_reached_is_rejected() {
    let client = TestClient::new(MODELS);
    for quorum in [0, 3] {
        let strategy = panel(&client, &["judge", "judge"]).quorum(quorum);
        let run = race(client.configs(&["poor", "good"]), strategy).await;
        let Err(RaceError::Strategy { reason, .. }) = &run.result else { panic!("{quorum}") };
        assert_eq!(*reason, format!("a quorum of {quorum} of 2 judges"));
    }
}

#[tokio::test]
async fn equal_votes_are_a_tie_for_the_cheaper() {
    let client = TestClient::new(MODELS);
    let configs = vec![client.priced("poor", "1"), client.priced("good", "9")];
    let run = race(configs, panel(&client, &["judge", "contrary"])).await;
    let verdict = &run.result().verdict;
    assert_eq!((run.result().selected_index, verdict.kind), (0, VerdictKind::Tie));
    assert!(verdict.fallback.clone().unwrap().starts_with("sim.poor is cheaper"));
}

#[tokio::test]
async fn panel_without_votes_reports_why() {
    let client = TestClient::new(MODELS);
    for (judges, kind) in [
        (&["fault-400", "fault-400"][..], VerdictKind::JudgeFailed),
        (&["unclear", "fault-400"], VerdictKind::Unparseable),
        (&["left", "unclear"], VerdictKind::NoQuorum),
        (&["left", "left", "unclear"], VerdictKind::Tie),
    ] {
        let run = race(client.configs(&["poor", "good"]), panel(&client, judges)).await;
        assert_eq!(run.result().verdict.kind, kind, "{judges:?}");
        assert!(run.result().verdict.fallback.is_some());
    }
}

#[tokio::test]
async fn judge_of_a_candidates_family_causes_a_warning() {
    let client = TestClient::new(MODELS);
    let run =
        race(client.configs(&["poor-7b", "good"]), panel(&client, &["poor-70b", "judge"])).await;
    let warnings: Vec<&String> = run
        .result()
        .verdict
        .reasons
        .iter()
        .filter(|reason| reason.starts_with("warning"))
        .collect();
    assert_eq!(
        warnings,
        [
            "warning: sim.poor-70b is of the same family as sim.poor-7b; models tend to prefer their own family"
        ]
    );
}

/// Judges of one family make similar errors, so two of them are hardly better than one.
#[tokio::test]
async fn judges_of_one_family_cause_a_warning() {
    let client = TestClient::new(MODELS);
    let judges = ["judge-7b", "left", "judge-70b", "left"];
    let run = race(client.configs(&["poor", "good"]), panel(&client, &judges)).await;
    let reasons = &run.result().verdict.reasons;
    let warnings: Vec<&String> =
        reasons.iter().filter(|reason| reason.starts_with("warning")).collect();
    assert_eq!(
        warnings,
        [
            "warning: the judges sim.judge-7b and sim.judge-70b are of one family and make similar errors",
            "warning: the judges sim.left and sim.left are of one family and make similar errors",
        ]
    );
}

#[tokio::test]
async fn loop_ids_of_a_panel_are_reproducible() {
    let client = TestClient::new(MODELS);
    let orders = async || {
        let strategy = panel(&client, &["left", "unclear", "left"]);
        let run = race(client.configs(&["poor", "good", "poor"]), strategy).await;
        let ballots = run.result().verdict.ballots.clone();
        ballots.into_iter().map(|b| (b.loop_id.number(), b.order, b.choice)).collect::<Vec<_>>()
    };
    let first = orders().await;
    assert_eq!(first, orders().await);
    assert!(first.len() > 12);
}

#[tokio::test]
async fn panel_without_judges_is_rejected() {
    let client = TestClient::new(MODELS);
    let run = race(client.configs(&["poor", "good"]), panel(&client, &[])).await;
    let Err(RaceError::Strategy { reason, .. }) = &run.result else { panic!("no judges") };
    assert_eq!(reason, "no judges given");
    assert!(run.events.is_empty());
}
