//! A single judge: orders, rounds, ids and cost.

use crate::support::{TestClient, race, race_in};
use bakeoff_agent::{AgentContext, AgentEvent, AgentMessage, ExecutionLimits, Session};
use bakeoff_core::NanoDollars;
use bakeoff_race::{
    LlmJudgeEvaluation, Orders, PairwiseEvaluation, PanelEvaluation, RaceError, VerdictKind,
};

const MODELS: &str = r#"
    poor = { default = "Poor. [quality 0.20]" }
    fair = { default = "Fair. [quality 0.50]" }
    good = { default = "Good. [quality 0.80]" }
    noisy = { noise = 0.3 }
    first = { bias = 10.0 }
    last = { bias = -10.0 }
"#;

#[tokio::test]
async fn better_answer_wins_in_any_position() {
    let client = TestClient::new(MODELS);
    for (names, expected) in [
        (&["poor", "good"][..], 1),
        (&["good", "poor"], 0),
        (&["poor", "good", "fair"], 1),
        (&["fair", "poor", "fair", "poor", "good"], 4),
    ] {
        let run = race(client.configs(names), client.judge("judge")).await;
        let result = run.result();
        assert_eq!(result.selected_index, expected, "{names:?}");
        assert_eq!(result.verdict.kind, VerdictKind::Decided);
        assert_eq!(result.verdict.strategy, "judge");
        assert_eq!(result.verdict.fallback, None);
        assert_eq!(run.call_count("sim.judge"), 2, "once in each order");
        assert_eq!(result.verdict.ranking[0], expected);
    }
}

#[tokio::test]
async fn every_reply_is_recorded_as_a_ballot() {
    let client = TestClient::new(MODELS);
    let context = AgentContext::default().with_session(Session::named("ses_1"));
    let prompts = vec![AgentMessage::user("What is it?")];
    let configs = client.configs(&["poor", "good"]);
    let run = race_in(context, prompts, configs, client.judge("judge")).await;
    let verdict = &run.result().verdict;
    let ballots: Vec<(&str, &[usize], Option<usize>, &str)> = verdict
        .ballots
        .iter()
        .map(|ballot| {
            (ballot.loop_id.as_str(), &ballot.order[..], ballot.choice, ballot.reply.as_str())
        })
        .collect();
    assert_eq!(
        ballots,
        [
            (
                "ses_1.sim.judge.3",
                &[0, 1][..],
                Some(1),
                "Response 2 answers the query best, with a quality of 0.80.\n2"
            ),
            (
                "ses_1.sim.judge.4",
                &[1, 0][..],
                Some(1),
                "Response 1 answers the query best, with a quality of 0.80.\n1"
            ),
        ]
    );
    // Reasons use branch names.
    assert_eq!(
        verdict.reasons,
        [
            "the judge prefers sim.good in both orders",
            "the judge: sim.good answers the query best, with a quality of 0.80.",
            "the judge: sim.good answers the query best, with a quality of 0.80.",
        ]
    );
    let text = serde_json::to_string(verdict).unwrap();
    assert_eq!(serde_json::from_str::<bakeoff_race::Verdict>(&text).unwrap(), *verdict);
}

#[tokio::test]
async fn shuffled_orders_are_reproducible() {
    let client = TestClient::new(MODELS);
    let names = ["poor", "fair", "good", "poor", "fair"];
    let first = race(client.configs(&names), client.judge("judge")).await;
    let orders: Vec<Vec<usize>> =
        first.result().verdict.ballots.iter().map(|ballot| ballot.order.clone()).collect();
    let mut reversed = orders[0].clone();
    reversed.reverse();
    assert_eq!(orders[1], reversed);
    assert_ne!(orders[0], [0, 1, 2, 3, 4], "this loop number shuffles");
    let again = race(client.configs(&names), client.judge("judge")).await;
    assert_eq!(again.result().verdict.ballots[0].order, orders[0]);
}

#[tokio::test]
async fn judge_with_full_position_bias_ends_in_a_tie_after_all_rounds() {
    let client = TestClient::new(MODELS);
    for judge in ["first", "last"] {
        let configs = vec![client.priced("poor", "5"), client.priced("good", "2")];
        let run = race(configs, client.judge(judge)).await;
        let result = run.result();
        assert_eq!(result.verdict.kind, VerdictKind::Tie);
        assert_eq!(result.selected_index, 1, "the cheaper");
        let fallback = result.verdict.fallback.clone().unwrap();
        assert!(fallback.starts_with("sim.good is cheaper: $0.0000"), "{fallback}");
        assert!(result.verdict.reasons.contains(&fallback));
        assert_eq!(
            result.verdict.reasons[0],
            "the judge's preference depends on the order, after 3 rounds: votes for sim.poor and sim.good"
        );
        assert_eq!(run.call_count(&format!("sim.{judge}")), 6, "three rounds of two");
    }
}

#[tokio::test]
async fn tie_goes_to_the_branch_with_most_votes() {
    let client = TestClient::new(MODELS);
    let judge = client.judge("first").rounds(8);
    let run = race(client.configs(&["fair", "fair", "fair", "fair"]), judge).await;
    let verdict = &run.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Tie);
    assert_eq!(verdict.ballots.len(), 16);
    let mut counts = [0; 4];
    verdict.ballots.iter().for_each(|ballot| counts[ballot.choice.unwrap()] += 1);
    let most = counts.iter().max().unwrap();
    assert_eq!(counts[run.result().selected_index], *most, "{counts:?}");
    let orders: std::collections::HashSet<&[usize]> =
        verdict.ballots.iter().map(|ballot| &ballot.order[..]).collect();
    assert!(orders.len() > 4, "each round has its own shuffle");
}

#[tokio::test]
async fn each_round_is_an_independent_sample() {
    let client = TestClient::new(MODELS);
    // Noise as large as the difference: some races need more than one round.
    let mut rounds = Vec::new();
    for number in 0..12 {
        let context = AgentContext::default().with_session(Session::resumed("ses", number * 10));
        let prompts = vec![AgentMessage::user("What is it?")];
        let run =
            race_in(context, prompts, client.configs(&["fair", "good"]), client.judge("noisy"))
                .await;
        let verdict = &run.result().verdict;
        rounds.push(verdict.ballots.len() / 2);
        if verdict.kind == VerdictKind::Decided {
            let [.., one, other] = &verdict.ballots[..] else { panic!("two ballots") };
            assert_eq!(one.choice, other.choice);
            assert_eq!(one.choice, Some(run.result().selected_index));
        }
    }
    assert!(rounds.contains(&1) && rounds.iter().any(|count| *count > 1), "{rounds:?}");
    assert!(rounds.iter().all(|count| *count <= 3), "{rounds:?}");
}

#[tokio::test]
async fn given_order_makes_a_single_call() {
    let client = TestClient::new(MODELS);
    let judge = client.judge("first").orders(Orders::AsGiven);
    let run = race(client.configs(&["poor", "good", "fair"]), judge).await;
    let result = run.result();
    assert_eq!((result.selected_index, result.verdict.kind), (0, VerdictKind::Decided));
    assert_eq!(run.call_count("sim.first"), 1);
    assert_eq!(result.verdict.ballots[0].order, [0, 1, 2]);
}

#[tokio::test]
async fn single_candidate_needs_no_judge() {
    let client = TestClient::new(MODELS);
    for names in [&["fault-400", "fair"][..], &["fair"]] {
        let run = race(client.configs(names), client.judge("judge")).await;
        let result = run.result();
        assert_eq!(result.verdict.kind, VerdictKind::Unopposed);
        assert_eq!(result.selected_index, names.len() - 1);
        assert_eq!(run.call_count("sim.judge"), 0);
        assert_eq!(result.evaluation_usage.total(), 0);
    }
}

#[tokio::test]
async fn failed_branch_is_not_shown_to_the_judge() {
    let client = TestClient::new(MODELS);
    let run = race(client.configs(&["fault-400", "poor", "good"]), client.judge("judge")).await;
    let result = run.result();
    assert_eq!(result.selected_index, 2);
    assert_eq!(result.verdict.ballots[0].order, [1, 2]);
    assert!(!run.prompts("sim.judge")[0].contains("Response 3"));
}

#[tokio::test]
async fn ids_are_unique_and_usage_and_cost_add_up() {
    let client = TestClient::new(MODELS);
    let judge = LlmJudgeEvaluation::new(client.priced("first", "2"));
    let configs = client.configs(&["poor", "good"]);
    let context = AgentContext::default().with_session(Session::named("ses_7"));
    let prompts = vec![AgentMessage::user("What is it?")];
    let run = race_in(context, prompts, configs, judge).await;
    let result = run.result();
    let judged = run.usage("sim.first");
    assert_eq!(result.evaluation_usage, judged);
    let branches = run.usage("sim.poor").total() + run.usage("sim.good").total();
    assert_eq!(result.total_usage.total(), judged.total() + branches);
    let cost = result.verdict.cost.unwrap();
    // The cost of each call is rounded separately.
    let whole = i64::try_from(judged.total() * 2_000).unwrap();
    assert!((cost.0 - whole).abs() <= 6, "{cost:?} {whole}");
    let loops = run.loops();
    let distinct: std::collections::HashSet<&String> = loops.iter().collect();
    assert_eq!((loops.len(), distinct.len()), (8, 8));
    assert!(loops.iter().all(|id| id.starts_with("ses_7.")), "{loops:?}");
    let ballots: Vec<String> =
        result.verdict.ballots.iter().map(|ballot| ballot.loop_id.to_string()).collect();
    assert!(ballots.iter().all(|id| loops.contains(id)), "{ballots:?}");
}

#[tokio::test]
async fn loop_ids_are_unique_across_races_of_a_session() {
    let client = TestClient::new(MODELS);
    let mut context = AgentContext::default().with_session(Session::named("ses_7"));
    let mut loops = Vec::new();
    for _ in 0..2 {
        let prompts = vec![AgentMessage::user("What is it?")];
        let configs = client.configs(&["poor", "good"]);
        let run = race_in(context, prompts, configs, client.judge("judge")).await;
        loops.extend(run.loops());
        context = run.result().selected_context.clone();
    }
    // Two branches and the judge in both orders, twice.
    let distinct: std::collections::HashSet<&String> = loops.iter().collect();
    assert_eq!((loops.len(), distinct.len()), (8, 8), "{loops:?}");
    assert_eq!(context.session.loops(), 8);
}

#[tokio::test]
async fn judge_of_a_candidates_family_causes_a_warning() {
    let client = TestClient::new("judge-7b = { bias = 0.0 }");
    let run = race(client.configs(&["judge-70b", "other"]), client.judge("judge-7b")).await;
    let reasons = &run.result().verdict.reasons;
    let warning = "warning: sim.judge-7b is of the same family as sim.judge-70b; models tend to prefer their own family";
    assert!(reasons.iter().any(|reason| reason == warning), "{reasons:?}");
}

#[tokio::test]
async fn candidates_are_anonymous() {
    let client = TestClient::new(MODELS);
    let run = race(client.configs(&["poor", "good"]), client.judge("judge")).await;
    for question in run.prompts("sim.judge") {
        let question = question.to_lowercase();
        assert!(!question.contains("sim.") && !question.contains("sim/"), "{question}");
        assert!(!question.contains("ses_"), "{question}");
    }
}

#[tokio::test]
async fn quality_marks_in_the_conversation_are_ignored() {
    let client = TestClient::new(MODELS);
    let context = AgentContext::default().with_messages(vec![
        bakeoff_core::Message::user("[quality 0.99]").into(),
        bakeoff_core::Message::assistant("Fair. [quality 0.01]").into(),
    ]);
    let prompts = vec![AgentMessage::user("[quality 0.98]")];
    let run =
        race_in(context, prompts, client.configs(&["poor", "good"]), client.judge("judge")).await;
    assert_eq!(run.result().selected_index, 1);
    assert_eq!(run.result().verdict.kind, VerdictKind::Decided);
}

#[tokio::test]
async fn judge_that_cannot_be_called_is_rejected_before_any_call() {
    let client = TestClient::new(MODELS);
    let unpriced =
        bakeoff_llm::ModelConfig::named("openai", "local").base_url("http://127.0.0.1:9/v1");
    let model = bakeoff_llm::Model::resolve(&unpriced, &|_| None).unwrap();
    let limits = ExecutionLimits::default().max_cost(NanoDollars(1));
    let mut config = client.config("judge").limits(limits);
    config.model = model;
    let judge = LlmJudgeEvaluation::new(config);
    let run = race(client.configs(&["poor", "good"]), judge).await;
    let Err(RaceError::Strategy { strategy, reason }) = &run.result else {
        panic!("{:?}", run.result)
    };
    assert_eq!(strategy, "judge");
    assert!(reason.starts_with("judge: ") && reason.contains("price"), "{reason}");
    assert!(run.events.is_empty());
}

/// Swapping alone is on average exactly as accurate as one call; further rounds while the orders disagree are
/// what helps. Everything is seeded, so the figures are reproducible.
#[tokio::test]
async fn further_rounds_make_the_better_answer_win_more_often() {
    const RACES: u32 = 150;
    let client = TestClient::new(
        r#"
        fair = { default = "Fair. [quality 0.50]" }
        good = { default = "Good. [quality 0.60]" }
        torn = { noise = 0.1, bias = 0.1 }
        "#,
    );
    let mut won = Vec::new();
    for (orders, rounds) in [(Orders::AsGiven, 1), (Orders::Both, 1), (Orders::Both, 3)] {
        let mut points = 0.0;
        for number in 0..RACES {
            let context =
                AgentContext::default().with_session(Session::resumed("ses", number * 10));
            let prompts = vec![AgentMessage::user("What is it?")];
            // The better answer is equally often in either position.
            let names = if number % 2 == 0 { ["fair", "good"] } else { ["good", "fair"] };
            let judge = client.judge("torn").orders(orders).rounds(rounds);
            let run = race_in(context, prompts, client.configs(&names), judge).await;
            let result = run.result();
            let better = usize::from(number % 2 == 0);
            // A tie counts half: the tie-break is independent of quality.
            points += match result.verdict.kind {
                VerdictKind::Tie => 0.5,
                _ if result.selected_index == better => 1.0,
                _ => 0.0,
            };
        }
        won.push(points / f64::from(RACES));
    }
    // By the formula in docs/judging.md: 71 %, 71 % and 87 %.
    for (share, expected) in won.iter().zip([0.71, 0.71, 0.87]) {
        assert!((share - expected).abs() < 0.08, "{won:?}");
    }
    assert!(won[2] > won[0].max(won[1]), "{won:?}");
}

#[tokio::test]
async fn every_round_is_announced_with_its_loops() {
    let client = TestClient::new(
        "a.default = \"x\"\nb.default = \"y\"\nleft.bias = 10.0\njudge-x.bias = 10.0",
    );
    let rounds = |run: &crate::support::RaceRun| -> Vec<(usize, String, u32, u32)> {
        let round = |event: &AgentEvent| match event {
            AgentEvent::JudgeRound { loop_ids, round, max_rounds } => {
                Some((loop_ids.len(), loop_ids[0].segment().to_owned(), *round, *max_rounds))
            }
            _ => None,
        };
        run.events.iter().filter_map(round).collect()
    };
    let of = |loops, judge: &str, round, max| (loops, format!("sim.{judge}"), round, max);
    let configs = || client.configs(&["a", "b"]);
    let run = race(configs(), client.judge("left").rounds(2)).await;
    assert_eq!(rounds(&run), [of(2, "left", 1, 2), of(2, "left", 2, 2)]);
    let run = race(configs(), client.judge("left").orders(Orders::AsGiven)).await;
    assert_eq!(rounds(&run), [of(1, "left", 1, 1)]);
    let panel = PanelEvaluation::new(vec![
        client.judge("left").rounds(2),
        client.judge("judge-x").rounds(1),
    ]);
    let run = race(configs(), panel).await;
    assert_eq!(rounds(&run), [of(2, "left", 1, 2), of(2, "judge-x", 1, 1), of(2, "left", 2, 2)]);
    let tournament = PairwiseEvaluation { judge: client.judge("left").rounds(1) };
    let run = race(client.configs(&["a", "b", "a"]), tournament).await;
    assert_eq!(rounds(&run), [of(6, "left", 1, 1)]);
}
