//! Tests of `retry_errors`: another round for rows without an answer.

use crate::support::JobFixture;
use bakeoff_map::{Field, FieldType, StopReason};

#[tokio::test(start_paused = true)]
async fn retry_round_requests_only_rows_without_an_answer() {
    let mut job = JobFixture::new(100, "map-stubborn");
    let first = job.run().await;
    assert_eq!(first.progress.errors, 100);
    job.config.retry_errors = true;
    let second = job.run().await;
    assert_eq!((second.progress.errors, second.stop), (100, None));
    assert_eq!(second.progress.requests, 2 * first.progress.requests);
    // If all rows have answers, there is no retry round.
    let mut job = JobFixture::new(100, "map");
    let first = job.run().await;
    job.config.retry_errors = true;
    assert!(job.plan_job().unwrap().plan().is_finished);
    assert_eq!(job.run().await, first);
}

#[tokio::test(start_paused = true)]
async fn interrupted_retry_round_has_the_same_result() {
    let mut job = JobFixture::new(2000, "map-drop");
    job.config.task.batch = vec![Field::new("count", FieldType::Integer)];
    let first = job.run().await;
    assert!(first.progress.errors > 5, "{first:?}");
    let journal = bakeoff_map::journal_path(&job.config.output);
    let before = std::fs::read(&journal).unwrap();
    let earlier = job.output();
    let batches_before = std::fs::read(bakeoff_map::batch_path(&job.config.output)).unwrap();
    job.config.retry_errors = true;
    let second = job.run().await;
    assert!(second.progress.errors < first.progress.errors, "{second:?}");
    let requests = second.progress.requests - first.progress.requests;
    assert!(requests <= 4 * first.progress.errors, "{requests} requests for {first:?}");
    job.check(2000);
    let expected = job.output();
    let batches = std::fs::read(bakeoff_map::batch_path(&job.config.output)).unwrap();
    // The same round, interrupted repeatedly.
    std::fs::write(&journal, before).unwrap();
    std::fs::write(&job.config.output, earlier).unwrap();
    std::fs::write(bakeoff_map::batch_path(&job.config.output), batches_before).unwrap();
    let mut done = 0;
    let mut stops = 0;
    loop {
        let outcome = job.run_until(|progress| progress.done > done).await;
        done = outcome.progress.done;
        if outcome.stop.is_none() {
            assert_eq!(outcome.progress.requests, second.progress.requests);
            break;
        }
        assert_eq!(outcome.stop, Some(StopReason::Interrupted));
        stops += 1;
    }
    assert!(stops > 1, "{stops}");
    assert_eq!(job.output(), expected);
    assert_eq!(std::fs::read(bakeoff_map::batch_path(&job.config.output)).unwrap(), batches);
}

#[tokio::test(start_paused = true)]
async fn edited_output_is_not_overwritten_by_a_retry_round() {
    let mut job = JobFixture::new(20, "map-stubborn");
    job.run().await;
    let edited = job.output().replacen("null", "\"by hand\"", 1);
    std::fs::write(&job.config.output, &edited).unwrap();
    job.config.retry_errors = true;
    let error = job.plan_job().unwrap_err();
    assert!(matches!(error, bakeoff_map::Error::Edited { .. }), "{error}");
    assert_eq!(job.output(), edited);
}
