//! Tests of file handling: locks, foreign files, and edits by other programs.

use crate::support::{JobFixture, model};
use bakeoff_core::{NanoDollars, Prices};
use bakeoff_llm::{Model, ModelConfig};
use bakeoff_map::{Error, FieldType, StopReason, batch_path, journal_path};
use std::path::Path;
use tokio_util::sync::CancellationToken;

async fn run(job: bakeoff_map::Job) -> Result<bakeoff_map::JobOutcome, Error> {
    job.run(CancellationToken::new(), &mut |_| {}).await
}

#[tokio::test(start_paused = true)]
async fn second_process_on_the_same_output_is_rejected() {
    let mut fixture = JobFixture::new(20, "map");
    let first = fixture.plan_job().unwrap();
    for force in [false, true] {
        fixture.config.force = force;
        let error = fixture.plan_job().unwrap_err();
        assert!(matches!(error, Error::Journal(bakeoff_journal::Error::Locked { .. })), "{error}");
        assert_eq!(error.hint(), Some("wait until the other process has finished"));
    }
    run(first).await.unwrap();
    fixture.run().await;
    assert_eq!(fixture.check(20), 20);
}

#[tokio::test(start_paused = true)]
async fn input_is_never_overwritten() {
    let fixture = JobFixture::new(3, "map");
    let out = &fixture.config.output;
    for input in [out.clone(), batch_path(out)] {
        std::fs::copy(&fixture.config.input, &input).unwrap();
        let mut config = fixture.config.clone();
        config.input = input;
        config.force = true;
        let error = bakeoff_map::Job::new(config, fixture.client()).unwrap_err();
        assert!(matches!(error, Error::SameFile(_)) && error.is_usage(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_changed_during_a_job_are_detected() {
    let rows = |numbers: std::ops::Range<usize>| -> String {
        numbers.map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect()
    };
    let mut fixture = JobFixture::new(30, "map");
    for (index, changed) in [rows(0..20), rows(1..31)].iter().enumerate() {
        fixture.config.output = fixture.file(&format!("{index}.jsonl"));
        std::fs::write(&fixture.config.input, rows(0..30)).unwrap();
        let job = fixture.plan_job().unwrap();
        std::fs::write(&fixture.config.input, changed).unwrap();
        let error = run(job).await.unwrap_err();
        assert!(matches!(error, Error::InputChanged(_)) && error.hint().is_some(), "{error}");
    }
    // Rows appended during the job are ignored.
    fixture.config.output = fixture.file("more.jsonl");
    std::fs::write(&fixture.config.input, rows(0..30)).unwrap();
    let job = fixture.plan_job().unwrap();
    std::fs::write(&fixture.config.input, rows(0..40)).unwrap();
    assert_eq!(run(job).await.unwrap().progress.done, 30);
    assert_eq!(fixture.check(30), 30);
}

#[tokio::test(start_paused = true)]
async fn existing_output_without_a_plan_is_kept() {
    let fixture = JobFixture::new(3, "map");
    std::fs::write(&fixture.config.output, "foreign\n").unwrap();
    let check_rejected = |fixture: &JobFixture| {
        let error = fixture.plan_job().unwrap_err();
        assert!(matches!(error, Error::OutputExists(_)), "{error}");
        assert_eq!(fixture.output(), "foreign\n");
    };
    check_rejected(&fixture);
    assert!(!journal_path(&fixture.config.output).exists(), "no journal is created");
    // A journal without a complete plan does not make the output part of the job.
    for journal in ["", "{\"plan\":"] {
        std::fs::write(journal_path(&fixture.config.output), journal).unwrap();
        check_rejected(&fixture);
    }
}

#[tokio::test(start_paused = true)]
async fn edited_output_is_kept() {
    let fixture = JobFixture::new(50, "map");
    fixture.run_until(|progress| progress.done >= 20).await;
    let written = fixture.output();
    for edited in [written.replacen("row-3", "row-4", 1), format!("{written}more\n")] {
        std::fs::write(&fixture.config.output, &edited).unwrap();
        let error = run(fixture.plan_job().unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::Edited { .. }) && error.is_usage(), "{error}");
        assert_eq!(fixture.output(), edited);
    }
    // A removed output is restored from the journal.
    std::fs::remove_file(&fixture.config.output).unwrap();
    let outcome = fixture.run().await;
    assert_eq!((fixture.check(50), outcome.progress.requests), (50, 5));
    // Edits are also detected after the job has finished.
    let whole = fixture.output();
    std::fs::write(&fixture.config.output, whole.replacen("row-3", "row 33", 1)).unwrap();
    assert!(matches!(run(fixture.plan_job().unwrap()).await, Err(Error::Edited { .. })));
}

#[tokio::test(start_paused = true)]
async fn job_with_a_different_model_under_the_same_name_is_not_resumed() {
    let mut fixture = JobFixture::new(20, "map");
    fixture.run_until(|progress| progress.done >= 10).await;
    fixture.config.models = vec![("sim/map".to_owned(), model("map-drop").1)];
    let error = fixture.plan_job().unwrap_err().to_string();
    assert!(error.ends_with("was started with different models: sim/map"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn interruption_during_a_backoff_leaves_no_error_rows() {
    for (name, profile) in [
        ("fault-503", "latency = { kind = \"fixed\", ms = 10 }"),
        (
            "map",
            "latency = { kind = \"fixed\", ms = 10 }\nrequests = { rate_per_s = 0.001, burst = 1 }",
        ),
    ] {
        let fixture = JobFixture::new(100, name).profile(profile);
        let stop = CancellationToken::new();
        let timer_stop = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            timer_stop.cancel();
        });
        let outcome = fixture.plan_job().unwrap().run(stop, &mut |_| {}).await.unwrap();
        assert_eq!(outcome.stop, Some(StopReason::Interrupted), "{name}");
        assert_eq!(outcome.progress.errors, 0, "{name}");
        assert!(!fixture.output().contains("\"error\":\""), "{name}");
        let journal = std::fs::read_to_string(journal_path(&fixture.config.output)).unwrap();
        assert!(!journal.contains("\"failed\""), "{journal}");
    }
}

#[tokio::test(start_paused = true)]
async fn journaled_answers_are_written_without_any_budget_left() {
    let prices = Prices {
        input: NanoDollars(1_000_000_000),
        output: NanoDollars(1_000_000_000),
        ..Prices::default()
    };
    let config = ModelConfig::named("sim", "map").prices(prices);
    let priced = Model::resolve(&config, &|_| None).unwrap();
    let mut fixture = JobFixture::new(200, "map");
    fixture.config.models = vec![("sim/map".to_owned(), priced)];
    fixture.config.max_cost = Some(NanoDollars(2_000_000));
    let first = fixture.run().await;
    assert_eq!(first.stop, Some(StopReason::Budget));
    let written = fixture.output();
    assert!(first.progress.done > 0 && first.progress.done < 200, "{first:?}");
    std::fs::remove_file(&fixture.config.output).unwrap();
    assert_eq!(fixture.run().await, first);
    assert_eq!(fixture.output(), written);
    assert!(Path::new(&journal_path(&fixture.config.output)).exists());
}

#[tokio::test(start_paused = true)]
async fn journaled_answers_are_not_used_for_different_rows() {
    let rows = |first: usize| -> String {
        (first..first + 100).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect()
    };
    let slow = "latency = { kind = \"fixed\", ms = 100 }";
    let mut fixture =
        JobFixture::new(100, "map").profile(slow).limits(bakeoff_pace::Limits::fixed(1));
    fixture.config.max_held.rows = 20;
    let job = fixture.plan_job().unwrap();
    // The job runs on different rows until it is stopped.
    std::fs::write(&fixture.config.input, rows(1)).unwrap();
    let stop = CancellationToken::new();
    let mut on_progress = |progress: &bakeoff_map::JobProgress| {
        if progress.settled >= 50 {
            stop.cancel();
        }
    };
    let outcome = job.run(stop.clone(), &mut on_progress).await.unwrap();
    assert_eq!(outcome.stop, Some(StopReason::Interrupted));
    std::fs::write(&fixture.config.input, rows(0)).unwrap();
    let error = run(fixture.plan_job().unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Edited { .. }), "{error}");
    std::fs::remove_file(&fixture.config.output).unwrap();
    fixture.run().await;
    assert_eq!(fixture.check(100), 100);
}

#[tokio::test(start_paused = true)]
async fn edited_output_is_detected_before_the_first_request() {
    let fixture = JobFixture::new(50, "map");
    fixture.run_until(|progress| progress.done >= 20).await;
    let (written, journal) = (fixture.output(), journal_path(&fixture.config.output));
    let journaled = std::fs::read(&journal).unwrap();
    for edited in [written.replacen("row-3", "row-4", 1), format!("{written}{{")] {
        std::fs::write(&fixture.config.output, &edited).unwrap();
        let client = fixture.client();
        let job = bakeoff_map::Job::new(fixture.config.clone(), std::sync::Arc::clone(&client));
        run(job.unwrap()).await.unwrap_err();
        assert!(client.pools().iter().all(|pool| pool.snapshot().in_flight == 0));
        assert_eq!(std::fs::read(&journal).unwrap(), journaled);
    }
}

#[tokio::test(start_paused = true)]
async fn foreign_files_are_kept() {
    let mut fixture = JobFixture::new(3, "map");
    let (journal, batches) =
        (journal_path(&fixture.config.output), batch_path(&fixture.config.output));
    // Without batch fields, the file is not part of the job.
    std::fs::write(&batches, "mine").unwrap();
    fixture.run().await;
    assert_eq!(std::fs::read_to_string(&batches).unwrap(), "mine");
    fixture.config.output = fixture.file("b.jsonl");
    fixture.config.task.batch = vec![bakeoff_map::Field::new("count", FieldType::Integer)];
    std::fs::write(batch_path(&fixture.config.output), "mine").unwrap();
    assert!(matches!(fixture.plan_job().unwrap_err(), Error::OutputExists(_)));
    fixture.config.output = fixture.file("c.jsonl");
    for foreign in ["no journal", "{\"plan\"; no journal\n"] {
        let journal = journal_path(&fixture.config.output);
        std::fs::write(&journal, foreign).unwrap();
        for force in [false, true] {
            fixture.config.force = force;
            assert!(matches!(fixture.plan_job().unwrap_err(), Error::NotAJournal(_)), "{foreign}");
            assert_eq!(std::fs::read_to_string(&journal).unwrap(), foreign);
        }
    }
    // A hard link to the input.
    fixture.config.output = fixture.file("d.jsonl");
    std::fs::hard_link(&fixture.config.input, &fixture.config.output).unwrap();
    assert!(matches!(fixture.plan_job().unwrap_err(), Error::SameFile(_)));
    assert!(journal.exists());
}

#[tokio::test(start_paused = true)]
async fn finished_job_detects_edits() {
    let mut fixture = JobFixture::new(20, "map");
    fixture.config.task.batch = vec![bakeoff_map::Field::new("count", FieldType::Integer)];
    let outcome = fixture.run().await;
    let (whole, batches) = (fixture.output(), batch_path(&fixture.config.output));
    assert!(fixture.plan_job().unwrap().plan().is_finished);
    // An edit that keeps the length.
    std::fs::write(&fixture.config.output, whole.replacen("row-3", "row-4", 1)).unwrap();
    assert!(matches!(run(fixture.plan_job().unwrap()).await, Err(Error::Edited { .. })));
    std::fs::write(&fixture.config.output, &whole).unwrap();
    // A lost file is restored without requests.
    let before = std::fs::read(&batches).unwrap();
    std::fs::remove_file(&batches).unwrap();
    assert_eq!(fixture.run().await, outcome);
    assert_eq!(std::fs::read(&batches).unwrap(), before);
}
