use super::*;
use crate::{OptionsError, SearchLimit, SelectError, SpaceError};
use std::sync::atomic::{AtomicUsize, Ordering};

fn two_roles<'a>() -> Selection<'a> {
    Selection::new().role("planner", ["a", "b", "c"]).role("solver", ["x", "y"]).datapoints(40)
}

/// A score that is higher for planner `b` and solver `y`, with little variation.
fn value(combination: &Combination, datapoint: usize) -> f64 {
    let planner = if &combination["planner"] == "b" { 0.5 } else { 0.2 };
    let solver = if &combination["solver"] == "y" { 0.4 } else { 0.1 };
    planner + solver + 0.02 * (datapoint % 3) as f64
}

/// Passes more often for planner `b` and solver `y`.
fn passes(combination: &Combination, datapoint: usize) -> bool {
    let planner = if &combination["planner"] == "b" { 5 } else { 2 };
    let solver = if &combination["solver"] == "y" { 4 } else { 1 };
    datapoint * 7 % 10 < planner + solver
}

#[tokio::test]
async fn planted_best_is_found_by_every_method() {
    for method in crate::SELECTOR_NAMES.iter().filter(|name| **name != "lm_proposal") {
        let selection = match *method {
            "random_search" | "bayesian" => {
                let options = SelectorOptions { fraction: Some(1.0), ..SelectorOptions::default() };
                two_roles().options(options)
            }
            _ => two_roles(),
        };
        let result = selection
            .method(*method)
            .seed(3)
            .run(|combination, datapoint| async move {
                Ok(CellScore::new(value(&combination, datapoint)).cost(NanoDollars(10)))
            })
            .await
            .unwrap();
        assert_eq!(result.winner.to_string(), "planner=b + solver=y", "{method}");
        assert_eq!((&result.winner["planner"], result.outcome.selector.as_str()), ("b", *method));
        assert_eq!(result.spent, NanoDollars(10 * result.outcome.cells as i64));
        assert!(result.score > 0.8 && result.failures.is_empty(), "{method}");
        assert_eq!(result.combination(result.winner.number()).as_ref(), Some(&result.winner));
        assert_eq!(result.combination(6), None);
    }
}

#[tokio::test]
async fn auto_reports_its_confidence() {
    let result = two_roles()
        .confidence(0.9)
        .run(|combination, datapoint| async move { Ok(passes(&combination, datapoint).into()) })
        .await
        .unwrap();
    assert!(result.confidence.is_some_and(|confidence| confidence >= 0.9), "{result:?}");
}

#[tokio::test]
async fn error_of_the_closure_is_missing_data_and_not_a_zero() {
    let result = Selection::new()
        .role("solver", ["steady", "flaky"])
        .datapoints(100)
        .method("brute_force")
        .run(|combination, datapoint| async move {
            if &combination["solver"] == "flaky" && datapoint == 17 {
                return Err(CellError::new("timed out").cost(NanoDollars(5)));
            }
            let value = if &combination["solver"] == "flaky" { 0.8 } else { 0.7 };
            Ok(CellScore::new(value).cost(NanoDollars(2)))
        })
        .await
        .unwrap();
    assert_eq!(&result.winner["solver"], "flaky");
    assert!((result.score - 0.8).abs() < 1e-12, "{}", result.score);
    let ranked = &result.outcome.ranking[0];
    assert_eq!((ranked.n, ranked.errors, ranked.cost), (99, 1, Some(NanoDollars(2))));
    assert_eq!(result.spent, NanoDollars(199 * 2 + 5));
    let [failure] = &result.failures[..] else { panic!("{:?}", result.failures) };
    assert_eq!(failure.to_string(), "solver=flaky, datapoint 17: timed out");
}

#[tokio::test]
async fn question_mark_converts_any_error() {
    let error = Selection::new()
        .role("solver", ["x"])
        .datapoints(3)
        .run(|_, _| async move {
            let value: f64 = "no number".parse()?;
            Ok(value.into())
        })
        .await
        .unwrap_err();
    let text = error.to_string();
    let expected = "no combination can be chosen: all cells of the first round errored; for example \
                    solver=x, datapoint ";
    assert!(text.starts_with(expected) && text.ends_with(": invalid float literal"), "{text}");
    let Error::Search { source: SelectError::NothingObserved(_), failures } = error else {
        panic!("{error:?}")
    };
    assert!(failures.len() == 3 && failures[0].error.source().is::<std::num::ParseFloatError>());
}

#[tokio::test(start_paused = true)]
async fn latency_is_measured_unless_given() {
    let result = Selection::new()
        .role("solver", ["fast", "slow", "queued"])
        .datapoints(4)
        .method("brute_force")
        .run(|combination, _| async move {
            let seconds = if &combination["solver"] == "fast" { 2 } else { 30 };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let score = CellScore::new(0.5);
            Ok(match &combination["solver"] {
                "queued" => score.latency(Duration::from_millis(500)),
                _ => score,
            })
        })
        .await
        .unwrap();
    let latency = |combo: usize| {
        result.outcome.ranking.iter().find(|ranked| ranked.combo == combo).unwrap().latency
    };
    assert_eq!([0, 1, 2].map(latency), [2.0, 30.0, 0.5]);
    // Measured latencies do not decide between equal scores.
    assert_eq!(&result.winner["solver"], "fast");
}

#[tokio::test(start_paused = true)]
async fn exhausted_budget_returns_the_best_so_far() {
    let second = |selection: Selection<'static>| async move {
        let result = selection
            .method("brute_force")
            .max_concurrent(1)
            .run(|_, _| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(CellScore::new(0.5).cost(NanoDollars(100)))
            })
            .await
            .unwrap();
        (result.outcome.stopped, result.outcome.cells)
    };
    let cost = two_roles().max_cost(NanoDollars(700));
    assert_eq!(second(cost).await, (Some(SearchLimit::Cost), 7));
    assert_eq!(second(two_roles().max_cells(9)).await, (Some(SearchLimit::Cells), 9));
    let time = two_roles().max_time(Duration::from_secs(5));
    assert_eq!(second(time).await, (Some(SearchLimit::Time), 5));
}

#[tokio::test]
async fn cancellation_finishes_running_cells_and_returns_the_best_so_far() {
    let token = CancellationToken::new();
    let (token, started) = (&token, &AtomicUsize::new(0));
    let result = two_roles()
        .method("brute_force")
        .max_concurrent(4)
        .cancel(token.clone())
        .run(|_, _| async move {
            if started.fetch_add(1, Ordering::Relaxed) == 7 {
                token.cancel();
            }
            tokio::task::yield_now().await;
            Ok(CellScore::new(1.0))
        })
        .await
        .unwrap();
    assert_eq!(result.outcome.stopped, Some(SearchLimit::Halted));
    assert_eq!(result.outcome.cells, started.load(Ordering::Relaxed));
    assert!(result.outcome.cells < 12, "{}", result.outcome.cells);
}

#[tokio::test]
async fn fatal_error_ends_the_search() {
    let result = two_roles()
        .method("brute_force")
        .max_concurrent(1)
        .run(|combination, _| async move {
            match &combination["solver"] {
                "y" => Err(CellError::new("out of quota").fatal()),
                _ => Ok(CellScore::new(0.5)),
            }
        })
        .await
        .unwrap();
    assert_eq!(result.outcome.stopped, Some(SearchLimit::Halted));
    assert_eq!((result.outcome.cells, result.failures.len()), (40, 1));
    assert!(result.failures[0].error.is_fatal());
}

#[tokio::test]
async fn concurrency_is_limited_and_does_not_change_the_winner() {
    let (running, max_running) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
    let mut winners = Vec::new();
    for limit in [1, 4, 50] {
        max_running.store(0, Ordering::Relaxed);
        let result = two_roles()
            .max_concurrent(limit)
            .run(|combination, datapoint| async move {
                max_running
                    .fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                for _ in 0..datapoint % 5 {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::Relaxed);
                Ok(passes(&combination, datapoint).into())
            })
            .await
            .unwrap();
        assert!(max_running.load(Ordering::Relaxed) <= limit);
        winners.push((result.winner, result.outcome.cells));
    }
    assert!(winners.iter().all(|winner| *winner == winners[0]), "{winners:?}");
}

#[tokio::test]
async fn progress_is_reported_after_each_round() {
    let mut snapshots = Vec::new();
    let result = two_roles()
        .method("arm_elimination")
        .on_progress(|progress| snapshots.push(progress.clone()))
        .run(|combination, datapoint| async move {
            Ok(CellScore::from(passes(&combination, datapoint)).cost(NanoDollars(3)))
        })
        .await
        .unwrap();
    let last = snapshots.last().unwrap();
    assert_eq!((last.rounds, last.cells), (snapshots.len(), result.outcome.cells));
    assert_eq!((last.total_cells, last.spent), (240, result.spent));
    assert_eq!(last.leader.as_ref().unwrap().0, result.winner);
    assert!(snapshots[0].cells < last.cells);
}

#[tokio::test]
async fn invalid_input_is_a_typed_error() {
    let run = async |selection: Selection<'static>| {
        selection.run(|_, _| async move { Ok(CellScore::new(1.0)) }).await.unwrap_err()
    };
    let error = run(Selection::new().datapoints(1)).await;
    assert!(matches!(error, Error::Space(SpaceError::NoRoles)), "{error}");
    let error = run(Selection::new().role("solver", ["x"])).await;
    assert!(matches!(error, Error::Space(SpaceError::NoDatapoints)), "{error}");
    let error = run(two_roles().method("best")).await;
    assert!(matches!(error, Error::Options(OptionsError::Unknown { .. })), "{error}");
    let error = run(two_roles().confidence(2.0)).await;
    assert!(matches!(error, Error::Options(OptionsError::Confidence(_))), "{error}");
}

#[tokio::test]
async fn selection_can_run_as_a_spawned_task() {
    let task =
        tokio::spawn(two_roles().run(|combination, datapoint| async move {
            Ok(passes(&combination, datapoint).into())
        }));
    assert_eq!(&task.await.unwrap().unwrap().winner["planner"], "b");
}
