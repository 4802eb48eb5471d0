//! Rows through a model that reorders, drops, duplicates, renames, truncates, wraps and mixes answers.

use super::{TASK, text, write_rows};
use crate::Error;
use crate::scratch::Scratch;
use bakeoff_llm::{Client, ClientConfig, Model, ModelConfig};
use bakeoff_map::{Job, JobConfig, PackSize, ReplyFormat, Task};
use bakeoff_pace::{Limits, Strategy};
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Items per request.
const PACK: u32 = 20;

/// Correctness of rows under reply faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttackReport {
    /// Input rows of all seeds.
    pub rows: u64,
    /// Output rows.
    pub out: u64,
    /// Rows in the wrong position.
    pub misplaced: u64,
    /// Rows with the answer of another row.
    pub wrong: u64,
    /// Rows with their own answer.
    pub answered: u64,
    /// Rows with an error instead of an answer.
    pub errors: u64,
    /// Requests sent.
    pub requests: u64,
    /// Requests needed without faults.
    pub min_requests: u64,
}

pub(super) async fn measure(
    folder: &Scratch,
    rows: u32,
    seeds: u32,
) -> Result<AttackReport, Error> {
    let input = write_rows(folder, rows)?;
    let failed = |message: String| Error::Map(message);
    let task = Task::parse(TASK).map_err(|problems| failed(format!("{problems:?}")))?;
    let limits = Limits::new(Strategy::None);
    let config = ModelConfig::named("sim", "map-unruly").limits(limits);
    let model = Model::resolve(&config, &|_| None).map_err(|error| failed(error.to_string()))?;
    let output = folder.folder().join("attacked.jsonl");
    let mut report = AttackReport::default();
    for (seed, format) in (0..u64::from(seeds)).zip(ReplyFormat::ALL.into_iter().cycle()) {
        let simulator = bakeoff_sim::Config::default().seed(seed);
        let models = [bakeoff_map::simulated_models()];
        let config = ClientConfig::default().simulator(simulator).simulated_models(models);
        let client = Client::new(config);
        let models = vec![("sim/map-unruly".to_owned(), model.clone())];
        let mut config = JobConfig::new(&input, &output, task.clone(), models);
        config.pack = Some(PackSize::Items(PACK));
        config.format = Some(format);
        config.seed = seed;
        config.force = true;
        let job = Job::new(config, Arc::new(client)).map_err(|error| failed(error.to_string()))?;
        report.min_requests += job.plan().requests;
        let finished = job.run(CancellationToken::new(), &mut |_| {}).await;
        let finished = finished.map_err(|error| failed(error.to_string()))?;
        report.requests += finished.progress.requests;
        report.rows += u64::from(rows);
        count(&output, &mut report)?;
    }
    Ok(report)
}

/// Row of the output.
#[derive(Deserialize)]
struct OutputRow {
    text: String,
    copy: Option<String>,
    n: Option<u32>,
    error: Option<String>,
}

fn count(output: &Path, report: &mut AttackReport) -> Result<(), Error> {
    let error = |source| Error::Io { action: "read", path: output.to_owned(), source };
    let file = File::open(output).map_err(error)?;
    for (number, line) in (0..).zip(BufReader::new(file).lines()) {
        let row: OutputRow = serde_json::from_str(&line.map_err(error)?)
            .map_err(|source| Error::Map(source.to_string()))?;
        report.out += 1;
        report.misplaced += u64::from(row.text != text(number));
        match (&row.copy, row.n, &row.error) {
            (Some(copy), Some(n), None) if *copy == row.text && n == number => report.answered += 1,
            (None, None, Some(_)) => report.errors += 1,
            _ => report.wrong += 1,
        }
    }
    Ok(())
}
