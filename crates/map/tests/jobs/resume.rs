//! Tests of resuming: a job interrupted anywhere has the same output and pays for no request twice.

use crate::support::JobFixture;
use bakeoff_map::{PackSize, ReplyFormat, StopReason, Task, journal_path};
use bakeoff_pace::Limits;
use std::path::Path;
use std::sync::Mutex;

/// Runs a job without interruption. Returns its output and number of requests.
async fn run_uninterrupted(job: &JobFixture) -> (String, u64) {
    let outcome = job.run().await;
    assert_eq!(outcome.stop, None);
    (job.output(), outcome.progress.requests)
}

fn remove(job: &JobFixture) {
    for path in [job.config.output.clone(), journal_path(&job.config.output)] {
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn repeatedly_stopped_job_has_the_same_output_and_requests() {
    for seed in 0..5 {
        let format = ReplyFormat::ALL[seed as usize % 3];
        let profile = "latency = { kind = \"lognormal\", median_ms = 500, sigma = 1.0 }";
        let mut job = JobFixture::new(300, "map-unruly")
            .profile(profile)
            .seeded(seed, format)
            .limits(Limits::fixed(3));
        job.config.models.push(crate::support::model("map-drop"));
        let (expected, requests) = run_uninterrupted(&job).await;
        remove(&job);
        let (mut sent, mut done, mut stops) = (0, 0, 0);
        loop {
            let before = sent;
            let outcome = job.run_until(|progress| progress.done > done).await;
            done = outcome.progress.done;
            sent = outcome.progress.requests;
            assert!(sent >= before, "earlier requests count");
            if outcome.stop.is_none() {
                break;
            }
            assert_eq!(outcome.stop, Some(StopReason::Interrupted));
            stops += 1;
            assert!(stops < 200, "the job ends");
        }
        assert!(stops > 1, "{stops}");
        assert_eq!(job.output(), expected, "seed {seed}");
        assert_eq!(sent, requests, "no request is sent twice");
        // Running a finished job sends nothing.
        let again = job.run().await;
        assert_eq!((again.progress.requests, again.stop), (sent, None));
        assert_eq!(again.progress.errors, expected.matches("\"error\":\"").count() as u64);
    }
}

/// Simulates a killed process: the journal may end with a torn line, and the other files may lag behind it.
#[tokio::test(start_paused = true)]
async fn files_cut_at_any_position_are_completed() {
    let mut job = JobFixture::new(120, "map-unruly").seeded(3, ReplyFormat::Json);
    job = job.profile("latency = { kind = \"lognormal\", median_ms = 500, sigma = 1.0 }");
    job.config.task.batch = vec![bakeoff_map::Field::new("count", bakeoff_map::FieldType::Integer)];
    let (output, batches) =
        (job.config.output.clone(), bakeoff_map::batch_path(&job.config.output));
    let journal = journal_path(&output);
    let snapshots = Mutex::new(Vec::new());
    job.run_until(|_| {
        let files = [&journal, &output, &batches].map(|path| std::fs::read(path).unwrap());
        snapshots.lock().unwrap().push(files);
        false
    })
    .await;
    let (expected, expected_batches) = (job.output(), std::fs::read_to_string(&batches).unwrap());
    let snapshots = snapshots.into_inner().unwrap();
    assert!(snapshots.len() > 20, "{}", snapshots.len());
    for (number, [journaled, written, batched]) in snapshots.iter().enumerate() {
        // The last write may be incomplete.
        let cut = |bytes: &[u8]| bytes.len().saturating_sub(number * 7 % 300);
        let torn = &b"{\"asked\":{\"pack\":"[..number % 18];
        std::fs::write(&journal, [journaled, torn].concat()).unwrap();
        std::fs::write(&output, &written[..cut(written)]).unwrap();
        std::fs::write(&batches, &batched[..cut(batched)]).unwrap();
        job.run().await;
        assert_eq!(job.output(), expected, "snapshot {number}");
        assert_eq!(
            std::fs::read_to_string(&batches).unwrap(),
            expected_batches,
            "snapshot {number}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lost_output_is_restored_from_the_journal() {
    let job = JobFixture::new(100, "map");
    let (expected, requests) = run_uninterrupted(&job).await;
    std::fs::remove_file(&job.config.output).unwrap();
    let outcome = job.run().await;
    assert_eq!((job.output(), outcome.progress.requests), (expected, requests));
}

#[tokio::test(start_paused = true)]
async fn job_with_different_settings_is_not_resumed() {
    let mut job = JobFixture::new(40, "map");
    job.run_until(|progress| progress.done >= 10).await;
    let error = |job: &JobFixture| {
        let error = job.plan_job().unwrap_err();
        assert!(error.is_usage() && error.hint().is_some());
        error.to_string().replace(&job.config.output.display().to_string(), "OUT")
    };
    job.config.pack = Some(PackSize::Items(11));
    assert_eq!(error(&job), "OUT was started with --pack 10");
    job.config.pack = Some(PackSize::Auto);
    assert_eq!(job.plan_job().unwrap().plan().pack, 10, "the pack size is kept");
    job.config.seed = 1;
    assert_eq!(error(&job), "OUT was started with --seed 0");
    job.config.seed = 0;
    job.config.format = Some(ReplyFormat::Xml);
    assert_eq!(error(&job), "OUT was started with --format json");
    job.config.format = None;
    let task = Task { instructions: "Do something else.".to_owned(), ..job.config.task.clone() };
    let original = std::mem::replace(&mut job.config.task, task);
    assert_eq!(error(&job), "OUT was started with a different task");
    job.config.task = original;
    job.config.models.push(crate::support::model("map"));
    assert_eq!(error(&job), "OUT was started with --model sim/map");
    job.config.models.pop();
    std::fs::write(&job.config.input, "{\"text\":\"row-0\"}\n").unwrap();
    assert_eq!(error(&job), "OUT was started with different rows");
    job.config.force = true;
    job.run().await;
    assert_eq!(job.check(1), 1);
    job.config.force = false;
    std::fs::remove_file(journal_path(&job.config.output)).unwrap();
    assert_eq!(error(&job), "OUT already exists and has no journal");
    assert!(Path::new(&job.config.output).exists());
}
