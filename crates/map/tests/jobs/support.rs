//! A folder with rows, a task, and a client whose provider is simulated.

use bakeoff_llm::{Cache, Client, ClientConfig, Model, ModelConfig};
use bakeoff_map::{
    Error, Field, FieldType, Finished, Format, HeldRows, Job, JobConfig, PackSize, Progress, Task,
};
use bakeoff_pace::Limits;
use bakeoff_sim::{Config, Profile};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A place for a job.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) config: JobConfig,
    pub(crate) simulator: Config,
    /// Whether answers are cached, in the folder.
    pub(crate) is_cached: bool,
}

/// A text and a number for each item; the simulated models copy both from the item.
pub(crate) fn task() -> Task {
    let fields = vec![Field::new("copy", FieldType::String), Field::new("n", FieldType::Integer)];
    Task::new("Copy the text, and the number in it.", fields)
}

pub(crate) fn model(name: &str) -> (String, Model) {
    let model = Model::resolve(&ModelConfig::named("sim", name), &|_| None).unwrap();
    (format!("sim/{name}"), model)
}

impl Place {
    /// So many rows `{"text": "row-<n>"}`, in packs of ten, for that model.
    pub(crate) fn new(rows: usize, name: &str) -> Place {
        let lines: String = (0..rows).map(|n| format!("{{\"text\":\"row-{n}\"}}\n")).collect();
        Place::with("rows.jsonl", &lines, name)
    }

    pub(crate) fn with(file: &str, contents: &str, name: &str) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join(file);
        std::fs::write(&input, contents).unwrap();
        let config = JobConfig {
            input,
            output: folder.path().join("out.jsonl"),
            task: task(),
            models: vec![model(name)],
            pack: Some(PackSize::Items(10)),
            format: None,
            seed: 0,
            learned: None,
            max_cost: None,
            force: false,
            retry_errors: false,
            held: HeldRows::default(),
        };
        Place { folder, config, simulator: Config::default(), is_cached: false }
    }

    /// With the limits of a provider.
    pub(crate) fn profile(mut self, profile: &str) -> Place {
        let text = format!("[[profile]]\n{profile}\n");
        self.simulator.profile = Some(Profile::parse_file_text(&text).unwrap().remove(0));
        self
    }

    /// With limits of the first model.
    pub(crate) fn limits(mut self, limits: Limits) -> Place {
        let (name, model) = self.config.models.remove(0);
        self.config.models.insert(0, (name, model.with_limits(limits)));
        self
    }

    pub(crate) fn seeded(mut self, seed: u64, format: Format) -> Place {
        self.config.seed = seed;
        self.simulator.seed = seed;
        self.config.format = Some(format);
        self
    }

    pub(crate) fn client(&self) -> Arc<Client> {
        let simulator = self.simulator.clone();
        let file = self.file("cache");
        let cache = self.is_cached.then(|| Cache::open(&file, "map").unwrap());
        let mut config = ClientConfig::default().simulator(simulator);
        config.cache = cache;
        Arc::new(Client::new(config))
    }

    pub(crate) fn job(&self) -> Result<Job, Error> {
        Job::new(self.config.clone(), self.client())
    }

    pub(crate) async fn run(&self) -> Finished {
        self.run_until(|_| false).await
    }

    /// Runs until rows have been written that will do.
    pub(crate) async fn run_until(
        &self,
        is_enough: impl Fn(&Progress) -> bool + Send + Sync,
    ) -> Finished {
        let stop = CancellationToken::new();
        let mut listen = |progress: &Progress| {
            if is_enough(progress) {
                stop.cancel();
            }
        };
        self.job().unwrap().run(stop.clone(), &mut listen).await.unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn output(&self) -> String {
        std::fs::read_to_string(&self.config.output).unwrap()
    }

    /// The rows of the output.
    pub(crate) fn rows(&self) -> Vec<Value> {
        self.output().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every row is there, in order, with its own answer or with a reason; how many have answers.
    pub(crate) fn check(&self, rows: usize) -> usize {
        let out = self.rows();
        assert_eq!(out.len(), rows, "rows out are rows in");
        let mut answered = 0;
        for (n, row) in out.iter().enumerate() {
            assert_eq!(row["text"], format!("row-{n}"), "in order");
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
