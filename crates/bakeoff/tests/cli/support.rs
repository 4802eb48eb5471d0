//! Test directory, command runner and simulated provider.

use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Temporary directory with its own cache.
pub(crate) struct TestDir {
    folder: tempfile::TempDir,
}

/// Exit code and output of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestDir {
    pub(crate) fn new() -> TestDir {
        TestDir { folder: tempfile::tempdir().unwrap() }
    }

    /// Creates a directory with a suite file.
    pub(crate) fn with_suite(suite: &str) -> TestDir {
        TestDir::new().write("bakeoff.toml", suite)
    }

    pub(crate) fn write(self, name: &str, contents: impl AsRef<[u8]>) -> TestDir {
        std::fs::write(self.path().join(name), contents).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a file, and creates its parent directories.
    pub(crate) fn with(self, name: &str, contents: impl AsRef<[u8]>) -> TestDir {
        std::fs::create_dir_all(self.path().join(name).parent().unwrap()).unwrap();
        self.write(name, contents)
    }

    /// Adds a program that precedes all others in `PATH`.
    pub(crate) fn with_program(self, name: &str, script: &str) -> TestDir {
        let dir = self.with(&format!("bin/{name}"), script);
        let path = dir.path().join("bin").join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

    /// Returns `PATH` with the programs of this directory first.
    fn search_path(&self) -> OsString {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(self.path().join("bin"));
        std::env::join_paths(own.chain(std::env::split_paths(&others))).unwrap()
    }

    /// Returns the command in this directory, with a clean environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bakeoff"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", self.search_path())
            .env("HOME", self.path())
            .env("BAKEOFF_CACHE_DIR", self.path().join("cache"))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::from(self.command(arguments).output().unwrap())
    }

    /// Returns the directory of the only run.
    pub(crate) fn run_folder(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.path().join("runs")).unwrap();
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    /// Returns the folder in which the programs of the only run work, if there are any.
    pub(crate) fn work_folder(&self) -> Option<PathBuf> {
        let bytes = std::fs::read(self.run_folder().join("run.json")).unwrap();
        let run: Value = serde_json::from_slice(&bytes).unwrap();
        run["work_folder"].as_str().map(PathBuf::from)
    }

    /// Returns whether the only run has left its workspaces behind.
    pub(crate) fn left_workspaces(&self) -> bool {
        self.work_folder().is_some_and(|folder| folder.exists())
    }

    pub(crate) fn summary(&self) -> Value {
        let bytes = std::fs::read(self.run_folder().join("summary.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// Returns the trials of the only run, ordered by target, case and trial.
    pub(crate) fn trials(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.run_folder().join("journal.jsonl")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut trials: Vec<Value> = events
            .filter(|event| event["event"] == "trial_finished")
            .map(|event| event["result"].clone())
            .collect();
        trials.sort_by_key(|trial| {
            let part = |name: &str| trial["key"][name].as_str().unwrap_or_default().to_owned();
            (part("target"), part("case"), trial["key"]["trial"].as_u64())
        });
        trials
    }
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> CommandOutput {
        CommandOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl CommandOutput {
    /// Returns the events of `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the last event of `--json`, which is `done`.
    pub(crate) fn done(&self) -> Value {
        let done = self.events().pop().expect("no events");
        assert_eq!(done["event"], "done", "{}", self.transcript());
        done
    }

    /// Returns exit code and output as one text, for snapshots.
    pub(crate) fn transcript(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Process of `bakeoff sim` on a free port.
pub(crate) struct Provider {
    child: Child,
    pub(crate) base_url: String,
}

impl Provider {
    pub(crate) fn start(arguments: &[&str]) -> Provider {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bakeoff"))
            .args(["sim", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Provider { child, base_url: line.trim().to_owned() }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a suite with one target over HTTP.
fn suite(base_url: &str, limits: &str) -> String {
    format!(
        r#"
[suite]
artifacts = "none"
cache = "none"
[models.m]
provider = "openai"
model = "sim/echo"
base_url = "{base_url}"
limits = {{ {limits} }}
[[target]]
name = "one"
model = "m"
prompt = "Say {{{{ word }}}}."
[cases]
file = "cases.jsonl"
[[check]]
kind = "contains"
value = "{{{{ word }}}}"
"#
    )
}

/// Returns a directory with that suite and this number of cases.
pub(crate) fn suite_of(base_url: &str, limits: &str, cases: usize) -> TestDir {
    let case = |n: usize| format!("{{\"id\": \"c{n}\", \"word\": \"w{n}\"}}\n");
    TestDir::with_suite(&suite(base_url, limits))
        .write("cases.jsonl", (0..cases).map(case).collect::<String>())
}

/// Starts `bakeoff sim` with this profile.
pub(crate) fn profiled(dir: &Path, profile: &str) -> Provider {
    let path = dir.join("profile.toml");
    std::fs::write(&path, format!("[[profile]]\nname = \"p\"\n{profile}\n")).unwrap();
    Provider::start(&["--profile", path.to_str().unwrap()])
}

/// Returns the counters of the simulated provider.
pub(crate) fn stats(provider: &Provider) -> Value {
    let address = provider.base_url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    // The body may be chunked, with sizes on separate lines.
    let json = body.lines().find(|line| line.starts_with('{')).unwrap();
    serde_json::from_str(json).unwrap()
}
