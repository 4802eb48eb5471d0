//! A whole run over loopback HTTP, beside a bare loop that makes the same calls.

use crate::{Error, bare, usage};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// The program `bakeoff`.
    pub program: PathBuf,
    /// Cases of the large run.
    pub cases: u32,
    /// Requests in flight.
    pub connections: u32,
    /// Milliseconds that every answer takes.
    pub latency_ms: u32,
    /// How often both are measured; the medians count.
    pub rounds: u32,
}

/// What one of the two took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Seconds from start to end.
    pub seconds: f64,
    /// Seconds of processor time.
    pub cpu_seconds: f64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineReport {
    /// Cases of the large run.
    pub cases: u32,
    /// Seconds that the latency alone takes.
    pub ideal_seconds: f64,
    /// `bakeoff run`, a process of its own.
    pub run: Figures,
    /// The bare loop.
    pub bare: Figures,
    /// Peak memory of the large run.
    pub peak_bytes: u64,
    /// Cases of the small run, a tenth.
    pub few_cases: u32,
    /// Peak memory of the small run.
    pub peak_bytes_few: u64,
}

/// Measures.
pub fn engine(config: &EngineConfig) -> Result<EngineReport, Error> {
    let folder = Scratch::new()?;
    let provider = Provider::start(config)?;
    let few_cases = (config.cases / 10).max(1);
    let few = folder.write_suite("few", few_cases, &provider.base_url, config.connections)?;
    let many = folder.write_suite("many", config.cases, &provider.base_url, config.connections)?;
    // Memory first: a child inherits the peak of this process, which the bare loop would raise.
    let run = |suite: &Path| run_suite(&config.program, suite);
    run(&few)?;
    let peak_bytes_few = usage::of_children().peak_bytes;
    let mut runs = vec![run(&many)?];
    let peak_bytes = usage::of_children().peak_bytes;
    let mut bares = Vec::new();
    for round in 0..config.rounds.max(1) {
        if round > 0 {
            runs.push(run(&many)?);
        }
        bares.push(run_bare(&provider.base_url, config)?);
    }
    let rounds = f64::from(config.cases.div_ceil(config.connections));
    Ok(EngineReport {
        cases: config.cases,
        ideal_seconds: rounds * f64::from(config.latency_ms) / 1e3,
        run: median(runs),
        bare: median(bares),
        peak_bytes,
        few_cases,
        peak_bytes_few,
    })
}

fn run_suite(program: &Path, suite: &Path) -> Result<Figures, Error> {
    let before = usage::of_children().cpu;
    let started = Instant::now();
    let status = Command::new(program)
        .args(["run", "--no-cache", "--quiet", "--out"])
        .arg(suite.join("runs"))
        .arg(suite)
        .status()
        .map_err(|source| Error::Io { action: "run", path: program.to_owned(), source })?;
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        return Err(Error::Run(status));
    }
    let cpu = usage::of_children().cpu.saturating_sub(before);
    Ok(Figures { seconds, cpu_seconds: cpu.as_secs_f64() })
}

fn run_bare(base_url: &str, config: &EngineConfig) -> Result<Figures, Error> {
    let before = usage::of_self().cpu;
    let started = Instant::now();
    bare::run(base_url, config.cases, config.connections)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu: Duration = usage::of_self().cpu.saturating_sub(before);
    Ok(Figures { seconds, cpu_seconds: cpu.as_secs_f64() })
}

fn median(mut figures: Vec<Figures>) -> Figures {
    let mut middle = |part: fn(&Figures) -> f64| {
        figures.sort_by(|one, other| part(one).total_cmp(&part(other)));
        figures.get(figures.len() / 2).map_or(0.0, part)
    };
    Figures { seconds: middle(|f| f.seconds), cpu_seconds: middle(|f| f.cpu_seconds) }
}

/// What the run sends for the case of that number, so that the bare loop sends it too.
pub(crate) fn request_body(number: u32) -> String {
    let prompt = format!("Say the word w{number} and nothing else.");
    json!({"model": "sim/echo", "messages": [{"role": "user", "content": prompt}]}).to_string()
}

/// A folder that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Error> {
        let path = std::env::temp_dir().join(format!("bakeoff-bench-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|source| Error::Io {
            action: "create",
            path: path.clone(),
            source,
        })?;
        Ok(Scratch(path))
    }

    fn write_suite(
        &self,
        name: &str,
        cases: u32,
        base_url: &str,
        connections: u32,
    ) -> Result<PathBuf, Error> {
        let folder = self.0.join(name);
        let suite = format!(
            r#"
            [suite]
            name = "{name}"
            artifacts = "none"
            cache = "none"
            [models.echo]
            provider = "openai"
            model = "sim/echo"
            base_url = "{base_url}"
            limits = {{ connections = {connections} }}
            [[target]]
            name = "echo"
            model = "echo"
            prompt = "Say the word {{{{ word }}}} and nothing else."
            [cases]
            file = "cases.jsonl"
            [[check]]
            kind = "contains"
            value = "{{{{ word }}}}"
            "#
        );
        let write = || {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("bakeoff.toml"), &suite)?;
            let mut file = std::io::BufWriter::new(fs::File::create(folder.join("cases.jsonl"))?);
            for number in 0..cases {
                writeln!(
                    file,
                    "{}",
                    json!({"id": format!("case-{number}"), "word": format!("w{number}")})
                )?;
            }
            file.flush()
        };
        write().map_err(|source| Error::Io { action: "write", path: folder.clone(), source })?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What the system keeps in its folder for scratch is the system's business.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The simulated provider, a process of its own.
struct Provider {
    child: Child,
    base_url: String,
}

impl Provider {
    fn start(config: &EngineConfig) -> Result<Provider, Error> {
        let error = |source| Error::Io { action: "run", path: config.program.clone(), source };
        let mut child = Command::new(&config.program)
            .args(["sim", "--port", "0", "--latency-ms", &config.latency_ms.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(error)?;
        let mut base_url = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut base_url).map_err(error)?;
        }
        let base_url = base_url.trim().to_owned();
        let provider = Provider { child, base_url };
        if provider.base_url.is_empty() { Err(Error::NoProvider) } else { Ok(provider) }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
