//! Jobs that are interrupted anywhere and go on: nothing is different, nothing is paid for twice.

use crate::support::Place;
use bakeoff_map::{Format, PackSize, Stop, Task, journal_of};
use bakeoff_pace::Limits;
use std::path::Path;
use std::sync::Mutex;

/// What the undisturbed job writes, and how many requests it makes.
async fn undisturbed(job: &Place) -> (String, u64) {
    let finished = job.run().await;
    assert_eq!(finished.stop, None);
    (job.output(), finished.progress.requests)
}

fn remove(job: &Place) {
    for path in [job.config.output.clone(), journal_of(&job.config.output)] {
        std::fs::remove_file(path).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_stopped_again_and_again_ends_as_if_it_never_was() {
    for seed in 0..5 {
        let format = Format::ALL[seed as usize % 3];
        let profile = "latency = { kind = \"lognormal\", median_ms = 500, sigma = 1.0 }";
        let mut job = Place::new(300, "map-unruly")
            .profile(profile)
            .seeded(seed, format)
            .limits(Limits::fixed(3));
        job.config.models.push(crate::support::model("map-drop"));
        let (expected, requests) = undisturbed(&job).await;
        remove(&job);
        let (mut made, mut done, mut stops) = (0, 0, 0);
        loop {
            let before = made;
            let finished = job.run_until(|progress| progress.done > done).await;
            done = finished.progress.done;
            made = finished.progress.requests;
            assert!(made >= before, "what was spent before counts");
            if finished.stop.is_none() {
                break;
            }
            assert_eq!(finished.stop, Some(Stop::Interrupted));
            stops += 1;
            assert!(stops < 200, "it comes to an end");
        }
        assert!(stops > 1, "{stops}");
        assert_eq!(job.output(), expected, "seed {seed}");
        assert_eq!(made, requests, "nothing is paid for twice");
        // Nothing is left to do.
        let again = job.run().await;
        assert_eq!((again.progress.requests, again.stop), (made, None));
        assert_eq!(again.progress.errors, expected.matches("\"error\":\"").count() as u64);
    }
}

/// A process that is killed leaves the files as they are at some moment: the journal with the
/// beginning of a line, perhaps, and the others behind it.
#[tokio::test(start_paused = true)]
async fn files_that_are_cut_anywhere_are_completed() {
    let mut job = Place::new(120, "map-unruly").seeded(3, Format::Json);
    job = job.profile("latency = { kind = \"lognormal\", median_ms = 500, sigma = 1.0 }");
    job.config.task.batch = vec![bakeoff_map::Field::new("count", bakeoff_map::FieldType::Integer)];
    let (output, facts) = (job.config.output.clone(), bakeoff_map::facts_of(&job.config.output));
    let journal = journal_of(&output);
    let moments = Mutex::new(Vec::new());
    job.run_until(|_| {
        let files = [&journal, &output, &facts].map(|path| std::fs::read(path).unwrap());
        moments.lock().unwrap().push(files);
        false
    })
    .await;
    let (expected, whole_facts) = (job.output(), std::fs::read_to_string(&facts).unwrap());
    let moments = moments.into_inner().unwrap();
    assert!(moments.len() > 20, "{}", moments.len());
    for (number, [journaled, written, said]) in moments.iter().enumerate() {
        // What was handed over last may have come through in part.
        let cut = |bytes: &[u8]| bytes.len().saturating_sub(number * 7 % 300);
        let torn = &b"{\"asked\":{\"pack\":"[..number % 18];
        std::fs::write(&journal, [journaled, torn].concat()).unwrap();
        std::fs::write(&output, &written[..cut(written)]).unwrap();
        std::fs::write(&facts, &said[..cut(said)]).unwrap();
        job.run().await;
        assert_eq!(job.output(), expected, "moment {number}");
        assert_eq!(std::fs::read_to_string(&facts).unwrap(), whole_facts, "moment {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_output_that_is_lost_is_made_from_the_journal() {
    let job = Place::new(100, "map");
    let (expected, requests) = undisturbed(&job).await;
    std::fs::remove_file(&job.config.output).unwrap();
    let finished = job.run().await;
    assert_eq!((job.output(), finished.progress.requests), (expected, requests));
}

#[tokio::test(start_paused = true)]
async fn another_job_does_not_go_on_with_it() {
    let mut job = Place::new(40, "map");
    job.run_until(|progress| progress.done >= 10).await;
    let error = |job: &Place| {
        let error = job.job().unwrap_err();
        assert!(error.is_usage() && error.hint().is_some());
        error.to_string().replace(&job.config.output.display().to_string(), "OUT")
    };
    job.config.pack = Some(PackSize::Items(11));
    assert_eq!(error(&job), "OUT was begun with --pack 10");
    job.config.pack = Some(PackSize::Auto);
    assert_eq!(job.job().unwrap().plan().pack, 10, "what was chosen is kept");
    job.config.seed = 1;
    assert_eq!(error(&job), "OUT was begun with --seed 0");
    job.config.seed = 0;
    job.config.format = Some(Format::Xml);
    assert_eq!(error(&job), "OUT was begun with --format json");
    job.config.format = None;
    let task = Task { instructions: "Do something else.".to_owned(), ..job.config.task.clone() };
    let old = std::mem::replace(&mut job.config.task, task);
    assert_eq!(error(&job), "OUT was begun with another task");
    job.config.task = old;
    job.config.models.push(crate::support::model("map"));
    assert_eq!(error(&job), "OUT was begun with --model sim/map");
    job.config.models.pop();
    std::fs::write(&job.config.input, "{\"text\":\"row-0\"}\n").unwrap();
    assert_eq!(error(&job), "OUT was begun with other rows");
    job.config.force = true;
    job.run().await;
    assert_eq!(job.check(1), 1);
    job.config.force = false;
    std::fs::remove_file(journal_of(&job.config.output)).unwrap();
    assert_eq!(error(&job), "OUT exists, and has no journal beside it");
    assert!(Path::new(&job.config.output).exists());
}
