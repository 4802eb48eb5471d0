//! One judge: orders, rounds, ids and what it costs.

use crate::support::{World, race, race_in};
use bakeoff_agent::{AgentContext, AgentLoopConfig, AgentMessage, ExecutionLimits, Session};
use bakeoff_core::NanoDollars;
use bakeoff_race::{LlmJudgeEvaluation, Orders, RaceError, VerdictKind};

const PERSONAS: &str = r#"
    poor = { default = "Poor. [quality 0.20]" }
    fair = { default = "Fair. [quality 0.50]" }
    good = { default = "Good. [quality 0.80]" }
    noisy = { noise = 0.3 }
    first = { bias = 10.0 }
    last = { bias = -10.0 }
"#;

#[tokio::test]
async fn the_better_answer_wins_wherever_it_stands() {
    let world = World::new(PERSONAS);
    for (names, expected) in [
        (&["poor", "good"][..], 1),
        (&["good", "poor"], 0),
        (&["poor", "good", "fair"], 1),
        (&["fair", "poor", "fair", "poor", "good"], 4),
    ] {
        let raced = race(world.configs(names), world.judge("judge")).await;
        let result = raced.result();
        assert_eq!(result.selected_index, expected, "{names:?}");
        assert_eq!(result.verdict.kind, VerdictKind::Decided);
        assert_eq!(result.verdict.strategy, "judge");
        assert_eq!(result.verdict.fallback, None);
        assert_eq!(raced.asked("sim.judge"), 2, "once in each order");
        assert_eq!(result.verdict.ranking[0], expected);
    }
}

#[tokio::test]
async fn every_reply_is_a_ballot() {
    let world = World::new(PERSONAS);
    let context = AgentContext { session: Session::named("ses_1"), ..AgentContext::default() };
    let prompts = vec![AgentMessage::user("What is it?")];
    let configs = world.configs(&["poor", "good"]);
    let raced = race_in(context, prompts, configs, world.judge("judge")).await;
    let verdict = &raced.result().verdict;
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
    // People know branches by name.
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
async fn several_answers_are_shuffled_and_reversed_the_same_way_every_time() {
    let world = World::new(PERSONAS);
    let names = ["poor", "fair", "good", "poor", "fair"];
    let first = race(world.configs(&names), world.judge("judge")).await;
    let orders: Vec<Vec<usize>> =
        first.result().verdict.ballots.iter().map(|ballot| ballot.order.clone()).collect();
    let mut reversed = orders[0].clone();
    reversed.reverse();
    assert_eq!(orders[1], reversed);
    assert_ne!(orders[0], [0, 1, 2, 3, 4], "this number shuffles");
    let again = race(world.configs(&names), world.judge("judge")).await;
    assert_eq!(again.result().verdict.ballots[0].order, orders[0]);
}

#[tokio::test]
async fn a_judge_who_looks_at_the_place_alone_is_asked_in_every_round_and_then_it_is_a_tie() {
    let world = World::new(PERSONAS);
    for judge in ["first", "last"] {
        let configs = vec![world.priced("poor", "5"), world.priced("good", "2")];
        let raced = race(configs, world.judge(judge)).await;
        let result = raced.result();
        assert_eq!(result.verdict.kind, VerdictKind::Tie);
        assert_eq!(result.selected_index, 1, "the cheaper");
        let fallback = result.verdict.fallback.clone().unwrap();
        assert!(fallback.starts_with("sim.good is cheaper: $0.0000"), "{fallback}");
        assert!(result.verdict.reasons.contains(&fallback));
        assert_eq!(
            result.verdict.reasons[0],
            "the judge's preference depends on the order, after 3 rounds: it named sim.poor and sim.good"
        );
        assert_eq!(raced.asked(&format!("sim.{judge}")), 6, "three rounds of two");
    }
}

#[tokio::test]
async fn a_tie_of_several_goes_to_the_most_often_named() {
    let world = World::new(PERSONAS);
    let judge = LlmJudgeEvaluation { rounds: 8, ..world.judge("first") };
    let raced = race(world.configs(&["fair", "fair", "fair", "fair"]), judge).await;
    let verdict = &raced.result().verdict;
    assert_eq!(verdict.kind, VerdictKind::Tie);
    assert_eq!(verdict.ballots.len(), 16);
    let mut counts = [0; 4];
    verdict.ballots.iter().for_each(|ballot| counts[ballot.choice.unwrap()] += 1);
    let most = counts.iter().max().unwrap();
    assert_eq!(counts[raced.result().selected_index], *most, "{counts:?}");
    let orders: std::collections::HashSet<&[usize]> =
        verdict.ballots.iter().map(|ballot| &ballot.order[..]).collect();
    assert!(orders.len() > 4, "each round is shuffled anew");
}

#[tokio::test]
async fn a_new_round_is_a_new_sample() {
    let world = World::new(PERSONAS);
    // Noise of the size of the difference: some races need more than one round.
    let mut rounds = Vec::new();
    for number in 0..12 {
        let context = AgentContext {
            session: Session::resumed("ses", number * 10),
            ..AgentContext::default()
        };
        let prompts = vec![AgentMessage::user("What is it?")];
        let raced =
            race_in(context, prompts, world.configs(&["fair", "good"]), world.judge("noisy")).await;
        let verdict = &raced.result().verdict;
        rounds.push(verdict.ballots.len() / 2);
        if verdict.kind == VerdictKind::Decided {
            let [.., one, other] = &verdict.ballots[..] else { panic!("two ballots") };
            assert_eq!(one.choice, other.choice);
            assert_eq!(one.choice, Some(raced.result().selected_index));
        }
    }
    assert!(rounds.contains(&1) && rounds.iter().any(|count| *count > 1), "{rounds:?}");
    assert!(rounds.iter().all(|count| *count <= 3), "{rounds:?}");
}

#[tokio::test]
async fn one_call_in_the_order_of_the_configs() {
    let world = World::new(PERSONAS);
    let judge = LlmJudgeEvaluation { orders: Orders::AsGiven, ..world.judge("first") };
    let raced = race(world.configs(&["poor", "good", "fair"]), judge).await;
    let result = raced.result();
    assert_eq!((result.selected_index, result.verdict.kind), (0, VerdictKind::Decided));
    assert_eq!(raced.asked("sim.first"), 1);
    assert_eq!(result.verdict.ballots[0].order, [0, 1, 2]);
}

#[tokio::test]
async fn nobody_is_asked_when_there_is_no_choice() {
    let world = World::new(PERSONAS);
    for names in [&["fault-400", "fair"][..], &["fair"]] {
        let raced = race(world.configs(names), world.judge("judge")).await;
        let result = raced.result();
        assert_eq!(result.verdict.kind, VerdictKind::Unopposed);
        assert_eq!(result.selected_index, names.len() - 1);
        assert_eq!(raced.asked("sim.judge"), 0);
        assert_eq!(result.evaluation_usage.total(), 0);
    }
}

#[tokio::test]
async fn a_branch_that_failed_is_not_shown() {
    let world = World::new(PERSONAS);
    let raced = race(world.configs(&["fault-400", "poor", "good"]), world.judge("judge")).await;
    let result = raced.result();
    assert_eq!(result.selected_index, 2);
    assert_eq!(result.verdict.ballots[0].order, [1, 2]);
    assert!(!raced.questions("sim.judge")[0].contains("Response 3"));
}

#[tokio::test]
async fn ids_usage_and_cost_add_up() {
    let world = World::new(PERSONAS);
    let judge = LlmJudgeEvaluation::new(world.priced("first", "2"));
    let configs = world.configs(&["poor", "good"]);
    let context = AgentContext { session: Session::named("ses_7"), ..AgentContext::default() };
    let prompts = vec![AgentMessage::user("What is it?")];
    let raced = race_in(context, prompts, configs, judge).await;
    let result = raced.result();
    let judged = raced.usage("sim.first");
    assert_eq!(result.evaluation_usage, judged);
    let branches = raced.usage("sim.poor").total() + raced.usage("sim.good").total();
    assert_eq!(result.total_usage.total(), judged.total() + branches);
    let cost = result.verdict.cost.unwrap();
    // Each call is rounded on its own.
    let whole = i64::try_from(judged.total() * 2_000).unwrap();
    assert!((cost.0 - whole).abs() <= 6, "{cost:?} {whole}");
    let loops = raced.loops();
    let distinct: std::collections::HashSet<&String> = loops.iter().collect();
    assert_eq!((loops.len(), distinct.len()), (8, 8));
    assert!(loops.iter().all(|id| id.starts_with("ses_7.")), "{loops:?}");
    let ballots: Vec<String> =
        result.verdict.ballots.iter().map(|ballot| ballot.loop_id.to_string()).collect();
    assert!(ballots.iter().all(|id| loops.contains(id)), "{ballots:?}");
}

#[tokio::test]
async fn no_loop_of_two_races_of_a_session_has_the_name_of_another() {
    let world = World::new(PERSONAS);
    let mut context = AgentContext { session: Session::named("ses_7"), ..AgentContext::default() };
    let mut loops = Vec::new();
    for _ in 0..2 {
        let prompts = vec![AgentMessage::user("What is it?")];
        let configs = world.configs(&["poor", "good"]);
        let raced = race_in(context, prompts, configs, world.judge("judge")).await;
        loops.extend(raced.loops());
        context = raced.result().selected_context.clone();
    }
    // Two branches and the judge in both orders, twice.
    let distinct: std::collections::HashSet<&String> = loops.iter().collect();
    assert_eq!((loops.len(), distinct.len()), (8, 8), "{loops:?}");
    assert_eq!(context.session.loops(), 8);
}

#[tokio::test]
async fn a_judge_of_its_own_kind_is_warned_about() {
    let world = World::new("judge-7b = { bias = 0.0 }");
    let raced = race(world.configs(&["judge-70b", "other"]), world.judge("judge-7b")).await;
    let reasons = &raced.result().verdict.reasons;
    let warning = "warning: sim.judge-7b is of the same family as sim.judge-70b, and models like their own kind";
    assert!(reasons.iter().any(|reason| reason == warning), "{reasons:?}");
}

#[tokio::test]
async fn candidates_are_anonymous() {
    let world = World::new(PERSONAS);
    let raced = race(world.configs(&["poor", "good"]), world.judge("judge")).await;
    for question in raced.questions("sim.judge") {
        let question = question.to_lowercase();
        assert!(!question.contains("sim.") && !question.contains("sim/"), "{question}");
        assert!(!question.contains("ses_"), "{question}");
    }
}

#[tokio::test]
async fn marks_in_the_conversation_are_not_judged() {
    let world = World::new(PERSONAS);
    let context = AgentContext {
        messages: vec![
            bakeoff_core::Message::user("[quality 0.99]").into(),
            bakeoff_core::Message::assistant("Fair. [quality 0.01]").into(),
        ],
        ..AgentContext::default()
    };
    let prompts = vec![AgentMessage::user("[quality 0.98]")];
    let raced =
        race_in(context, prompts, world.configs(&["poor", "good"]), world.judge("judge")).await;
    assert_eq!(raced.result().selected_index, 1);
    assert_eq!(raced.result().verdict.kind, VerdictKind::Decided);
}

#[tokio::test]
async fn a_judge_that_cannot_be_asked_is_refused_before_anything_is_spent() {
    let world = World::new(PERSONAS);
    let unpriced =
        bakeoff_llm::ModelConfig::named("openai", "local").base_url("http://127.0.0.1:9/v1");
    let model = bakeoff_llm::Model::resolve(&unpriced, &|_| None).unwrap();
    let base = world.config("judge");
    let limits = ExecutionLimits { max_cost: Some(NanoDollars(1)), ..ExecutionLimits::default() };
    let judge = LlmJudgeEvaluation::new(AgentLoopConfig { model, limits, ..base });
    let raced = race(world.configs(&["poor", "good"]), judge).await;
    let Err(RaceError::Strategy { strategy, reason }) = &raced.result else {
        panic!("{:?}", raced.result)
    };
    assert_eq!(strategy, "judge");
    assert!(reason.starts_with("the judge: nobody knows the price"), "{reason}");
    assert!(raced.events.is_empty());
}

/// Swapping alone is exactly as good as one call on average; what helps is to ask again when the
/// orders disagree. Everything is seeded, so that the figures are the same every time.
#[tokio::test]
async fn asking_again_makes_the_better_answer_win_more_often() {
    const RACES: u32 = 150;
    let world = World::new(
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
            let context = AgentContext {
                session: Session::resumed("ses", number * 10),
                ..AgentContext::default()
            };
            let prompts = vec![AgentMessage::user("What is it?")];
            // The better one stands in either place equally often.
            let names = if number % 2 == 0 { ["fair", "good"] } else { ["good", "fair"] };
            let judge = LlmJudgeEvaluation { orders, rounds, ..world.judge("torn") };
            let raced = race_in(context, prompts, world.configs(&names), judge).await;
            let result = raced.result();
            let better = usize::from(number % 2 == 0);
            // A tie is a coin here: what breaks it knows nothing of quality.
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
