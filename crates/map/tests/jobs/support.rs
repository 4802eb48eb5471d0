//! Fixture for jobs: a folder with rows, a task, and a client with the simulated provider.

use bakeoff_llm::{Cache, Client, ClientConfig, Model, ModelConfig};
use bakeoff_map::{
    Error, Field, FieldType, Job, JobConfig, JobOutcome, JobProgress, PackSize, ReplyFormat, Task,
};
use bakeoff_pace::Limits;
use bakeoff_sim::{Config, Profile};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A job in a temporary folder.
pub(crate) struct JobFixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) config: JobConfig,
    pub(crate) simulator: Config,
    /// Whether responses are cached in the folder.
    pub(crate) is_cached: bool,
}

/// Returns a task with a string and a number, which the simulated models copy from the item.
pub(crate) fn task() -> Task {
    let fields = vec![Field::new("copy", FieldType::String), Field::new("n", FieldType::Integer)];
    Task::new("Copy the text, and the number in it.", fields)
}

/// Returns a simulated model with its display name.
pub(crate) fn model(name: &str) -> (String, Model) {
    let model = Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap();
    (format!("sim/{name}"), model)
}

impl JobFixture {
    /// Creates a job with rows `{"text": "row-<n>"}` in packs of ten.
    pub(crate) fn new(rows: usize, name: &str) -> JobFixture {
        let lines: String = (0..rows).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect();
        JobFixture::with_input("rows.jsonl", &lines, name)
    }

    /// Creates a job with this input file.
    pub(crate) fn with_input(file: &str, contents: &str, name: &str) -> JobFixture {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join(file);
        std::fs::write(&input, contents).unwrap();
        let output = folder.path().join("out.jsonl");
        let mut config = JobConfig::new(input, output, task(), vec![model(name)]);
        config.pack = Some(PackSize::Items(10));
        JobFixture { folder, config, simulator: Config::default(), is_cached: false }
    }

    /// Sets the profile of the simulated provider.
    pub(crate) fn profile(mut self, profile: &str) -> JobFixture {
        let text = format!("[[profile]]\n{profile}\n");
        self.simulator.profile = Some(Profile::parse_file_text(&text).unwrap().remove(0));
        self
    }

    /// Sets the limits of the first model.
    pub(crate) fn limits(mut self, limits: Limits) -> JobFixture {
        let (name, model) = self.config.models.remove(0);
        self.config.models.insert(0, (name, model.with_limits(limits)));
        self
    }

    /// Sets the seed and the reply format.
    pub(crate) fn seeded(mut self, seed: u64, format: ReplyFormat) -> JobFixture {
        self.config.seed = seed;
        self.simulator.seed = seed;
        self.config.format = Some(format);
        self
    }

    pub(crate) fn client(&self) -> Arc<Client> {
        let simulator = self.simulator.clone();
        let file = self.file("cache");
        let cache = self.is_cached.then(|| Cache::open(&file, "map").unwrap());
        let mut config = ClientConfig::default()
            .simulator(simulator)
            .simulated_models([bakeoff_map::simulated_models()]);
        config.cache = cache;
        Arc::new(Client::new(config))
    }

    /// Plans the job.
    pub(crate) fn plan_job(&self) -> Result<Job, Error> {
        Job::new(self.config.clone(), self.client())
    }

    /// Runs the job to its end.
    pub(crate) async fn run(&self) -> JobOutcome {
        self.run_until(|_| false).await
    }

    /// Runs the job until the predicate returns true.
    pub(crate) async fn run_until(
        &self,
        should_stop: impl Fn(&JobProgress) -> bool + Send + Sync,
    ) -> JobOutcome {
        let stop = CancellationToken::new();
        let mut on_progress = |progress: &JobProgress| {
            if should_stop(progress) {
                stop.cancel();
            }
        };
        self.plan_job().unwrap().run(stop.clone(), &mut on_progress).await.unwrap()
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the text of the output.
    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.config.output).unwrap()
    }

    /// Returns the rows of the output.
    pub(crate) fn rows(&self) -> Vec<Value> {
        self.output().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Checks that every row is in the output, in order, with its own answer or a reason. Returns the
    /// number of answers.
    pub(crate) fn check(&self, rows: usize) -> usize {
        let out = self.rows();
        assert_eq!(out.len(), rows, "number of rows");
        let mut answered = 0;
        for (n, row) in out.iter().enumerate() {
            assert_eq!(row["text"], format!("row-{n}"), "order of rows");
            match &row["error"] {
                Value::Null => {
                    assert_eq!(row["copy"], row["text"], "its own answer: {row}");
                    assert_eq!(row["n"], n, "its own answer: {row}");
                    answered += 1;
                }
                reason => {
                    assert!(row["copy"].is_null() && row["n"].is_null(), "{row}");
                    assert!(!reason.as_str().unwrap().is_empty(), "{row}");
                }
            }
        }
        answered
    }
}
