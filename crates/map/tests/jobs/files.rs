//! Who may write which files, and what is noticed when somebody changes them.

use crate::support::{Place, model};
use bakeoff_core::{NanoDollars, Prices};
use bakeoff_llm::{Model, ModelConfig};
use bakeoff_map::{Error, FieldType, Stop, facts_of, journal_of};
use std::path::Path;
use tokio_util::sync::CancellationToken;

async fn run(job: bakeoff_map::Job) -> Result<bakeoff_map::Finished, Error> {
    job.run(CancellationToken::new(), &mut |_| {}).await
}

#[tokio::test(start_paused = true)]
async fn one_output_is_for_one_process_at_a_time() {
    let mut place = Place::new(20, "map");
    let first = place.job().unwrap();
    for force in [false, true] {
        place.config.force = force;
        let error = place.job().unwrap_err();
        assert!(matches!(error, Error::Journal(bakeoff_journal::Error::Locked { .. })), "{error}");
        assert_eq!(error.hint(), Some("wait until the other one is done"));
    }
    run(first).await.unwrap();
    place.run().await;
    assert_eq!(place.check(20), 20);
}

#[tokio::test(start_paused = true)]
async fn the_input_is_never_written_over() {
    let place = Place::new(3, "map");
    let out = &place.config.output;
    for input in [out.clone(), facts_of(out)] {
        std::fs::copy(&place.config.input, &input).unwrap();
        let config = bakeoff_map::JobConfig { input, force: true, ..place.config.clone() };
        let error = bakeoff_map::Job::new(config, place.client()).unwrap_err();
        assert!(matches!(error, Error::SameFile(_)) && error.is_usage(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_that_change_while_a_job_goes_on_are_noticed() {
    let rows = |numbers: std::ops::Range<usize>| -> String {
        numbers.map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect()
    };
    let mut place = Place::new(30, "map");
    for (index, changed) in [rows(0..20), rows(1..31)].iter().enumerate() {
        place.config.output = place.file(&format!("{index}.jsonl"));
        std::fs::write(&place.config.input, rows(0..30)).unwrap();
        let job = place.job().unwrap();
        std::fs::write(&place.config.input, changed).unwrap();
        let error = run(job).await.unwrap_err();
        assert!(matches!(error, Error::InputChanged(_)) && error.hint().is_some(), "{error}");
    }
    // Rows that somebody adds are for the next job.
    place.config.output = place.file("more.jsonl");
    std::fs::write(&place.config.input, rows(0..30)).unwrap();
    let job = place.job().unwrap();
    std::fs::write(&place.config.input, rows(0..40)).unwrap();
    assert_eq!(run(job).await.unwrap().progress.done, 30);
    assert_eq!(place.check(30), 30);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_of_this_job_is_left_alone() {
    let place = Place::new(3, "map");
    std::fs::write(&place.config.output, "somebody else's\n").unwrap();
    let refused = |place: &Place| {
        let error = place.job().unwrap_err();
        assert!(matches!(error, Error::OutputExists(_)), "{error}");
        assert_eq!(place.output(), "somebody else's\n");
    };
    refused(&place);
    assert!(!journal_of(&place.config.output).exists(), "nothing is left behind");
    // An empty journal, or the beginning of a line, is no journal of it.
    for journal in ["", "{\"plan\":"] {
        std::fs::write(journal_of(&place.config.output), journal).unwrap();
        refused(&place);
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_that_somebody_has_changed_is_not_lost() {
    let place = Place::new(50, "map");
    place.run_until(|progress| progress.done >= 20).await;
    let written = place.output();
    for edited in [written.replacen("row-3", "row-4", 1), format!("{written}more\n")] {
        std::fs::write(&place.config.output, &edited).unwrap();
        let error = run(place.job().unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::Edited { .. }) && error.is_usage(), "{error}");
        assert_eq!(place.output(), edited);
    }
    // Moved away, it is made from the journal.
    std::fs::remove_file(&place.config.output).unwrap();
    let finished = place.run().await;
    assert_eq!((place.check(50), finished.progress.requests), (50, 5));
    // When all is done, too.
    let whole = place.output();
    std::fs::write(&place.config.output, whole.replacen("row-3", "row 33", 1)).unwrap();
    assert!(matches!(run(place.job().unwrap()).await, Err(Error::Edited { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_means_another_model_now_does_not_go_on() {
    let mut place = Place::new(20, "map");
    place.run_until(|progress| progress.done >= 10).await;
    place.config.models = vec![("sim/map".to_owned(), model("map-drop").1)];
    let error = place.job().unwrap_err().to_string();
    assert!(error.ends_with("was begun with other models: sim/map"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn who_is_stopped_while_it_waits_for_another_attempt_has_no_error_rows() {
    for (name, profile) in [
        ("fault-503", "latency = { kind = \"fixed\", ms = 10 }"),
        (
            "map",
            "latency = { kind = \"fixed\", ms = 10 }\nrequests = { rate_per_s = 0.001, burst = 1 }",
        ),
    ] {
        let place = Place::new(100, name).profile(profile);
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            stopping.cancel();
        });
        let finished = place.job().unwrap().run(stop, &mut |_| {}).await.unwrap();
        assert_eq!(finished.stop, Some(Stop::Interrupted), "{name}");
        assert_eq!(finished.progress.errors, 0, "{name}");
        assert!(!place.output().contains("\"error\":\""), "{name}");
        let journal = std::fs::read_to_string(journal_of(&place.config.output)).unwrap();
        assert!(!journal.contains("\"failed\""), "{journal}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_been_paid_for_is_written_even_when_no_money_is_left() {
    let prices = Prices {
        input: NanoDollars(1_000_000_000),
        output: NanoDollars(1_000_000_000),
        ..Prices::default()
    };
    let config = ModelConfig::named("sim", "map").prices(prices);
    let priced = Model::resolve(&config, &|_| None).unwrap();
    let mut place = Place::new(200, "map");
    place.config.models = vec![("sim/map".to_owned(), priced)];
    place.config.max_cost = Some(NanoDollars(2_000_000));
    let first = place.run().await;
    assert_eq!(first.stop, Some(Stop::Budget));
    let written = place.output();
    assert!(first.progress.done > 0 && first.progress.done < 200, "{first:?}");
    std::fs::remove_file(&place.config.output).unwrap();
    assert_eq!(place.run().await, first);
    assert_eq!(place.output(), written);
    assert!(Path::new(&journal_of(&place.config.output)).exists());
}

#[tokio::test(start_paused = true)]
async fn answers_about_rows_that_were_there_for_a_while_are_not_for_others() {
    let rows = |first: usize| -> String {
        (first..first + 100).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect()
    };
    let slow = "latency = { kind = \"fixed\", ms = 100 }";
    let mut place = Place::new(100, "map").profile(slow).limits(bakeoff_pace::Limits::fixed(1));
    place.config.held.rows = 20;
    let job = place.job().unwrap();
    // Other rows are in their places while it runs, until it is stopped.
    std::fs::write(&place.config.input, rows(1)).unwrap();
    let stop = CancellationToken::new();
    let mut listen = |progress: &bakeoff_map::Progress| {
        if progress.settled >= 50 {
            stop.cancel();
        }
    };
    let finished = job.run(stop.clone(), &mut listen).await.unwrap();
    assert_eq!(finished.stop, Some(Stop::Interrupted));
    std::fs::write(&place.config.input, rows(0)).unwrap();
    let error = run(place.job().unwrap()).await.unwrap_err();
    assert!(matches!(error, Error::Edited { .. }), "{error}");
    std::fs::remove_file(&place.config.output).unwrap();
    place.run().await;
    assert_eq!(place.check(100), 100);
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_is_noticed_before_anything_is_paid_for() {
    let place = Place::new(50, "map");
    place.run_until(|progress| progress.done >= 20).await;
    let (written, journal) = (place.output(), journal_of(&place.config.output));
    let journaled = std::fs::read(&journal).unwrap();
    for edited in [written.replacen("row-3", "row-4", 1), format!("{written}{{")] {
        std::fs::write(&place.config.output, &edited).unwrap();
        let client = place.client();
        let job = bakeoff_map::Job::new(place.config.clone(), std::sync::Arc::clone(&client));
        run(job.unwrap()).await.unwrap_err();
        assert!(client.pools().iter().all(|pool| pool.snapshot().in_flight == 0));
        assert_eq!(std::fs::read(&journal).unwrap(), journaled);
    }
}

#[tokio::test(start_paused = true)]
async fn files_of_others_are_left_alone() {
    let mut place = Place::new(3, "map");
    let (journal, facts) = (journal_of(&place.config.output), facts_of(&place.config.output));
    // No facts are asked for, and so this is not theirs.
    std::fs::write(&facts, "mine").unwrap();
    place.run().await;
    assert_eq!(std::fs::read_to_string(&facts).unwrap(), "mine");
    place.config.output = place.file("b.jsonl");
    place.config.task.batch = vec![bakeoff_map::Field::new("count", FieldType::Integer)];
    std::fs::write(facts_of(&place.config.output), "mine").unwrap();
    assert!(matches!(place.job().unwrap_err(), Error::OutputExists(_)));
    place.config.output = place.file("c.jsonl");
    for theirs in ["no journal", "{\"plan\"; no journal\n"] {
        let journal = journal_of(&place.config.output);
        std::fs::write(&journal, theirs).unwrap();
        for force in [false, true] {
            place.config.force = force;
            assert!(matches!(place.job().unwrap_err(), Error::NotAJournal(_)), "{theirs}");
            assert_eq!(std::fs::read_to_string(&journal).unwrap(), theirs);
        }
    }
    // Under another name, but the same.
    place.config.output = place.file("d.jsonl");
    std::fs::hard_link(&place.config.input, &place.config.output).unwrap();
    assert!(matches!(place.job().unwrap_err(), Error::SameFile(_)));
    assert!(journal.exists());
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_notices_what_was_changed_since() {
    let mut place = Place::new(20, "map");
    place.config.task.batch = vec![bakeoff_map::Field::new("count", FieldType::Integer)];
    let finished = place.run().await;
    let (whole, facts) = (place.output(), facts_of(&place.config.output));
    assert!(place.job().unwrap().plan().is_finished);
    // As long as before, and another.
    std::fs::write(&place.config.output, whole.replacen("row-3", "row-4", 1)).unwrap();
    assert!(matches!(run(place.job().unwrap()).await, Err(Error::Edited { .. })));
    std::fs::write(&place.config.output, &whole).unwrap();
    // What is lost is made again, and nothing is asked.
    let said = std::fs::read(&facts).unwrap();
    std::fs::remove_file(&facts).unwrap();
    assert_eq!(place.run().await, finished);
    assert_eq!(std::fs::read(&facts).unwrap(), said);
}
