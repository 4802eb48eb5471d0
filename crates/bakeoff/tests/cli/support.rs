//! A folder to work in, the program to run there, and a simulated provider.

use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder that is gone afterwards, with a cache of its own.
pub(crate) struct Workplace {
    folder: tempfile::TempDir,
}

/// What a command left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workplace {
    pub(crate) fn new() -> Workplace {
        Workplace { folder: tempfile::tempdir().unwrap() }
    }

    /// With a suite file.
    pub(crate) fn with_suite(suite: &str) -> Workplace {
        Workplace::new().write("bakeoff.toml", suite)
    }

    pub(crate) fn write(self, name: &str, contents: impl AsRef<[u8]>) -> Workplace {
        std::fs::write(self.path().join(name), contents).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// With a file, in folders that are made for it.
    pub(crate) fn with(self, name: &str, contents: impl AsRef<[u8]>) -> Workplace {
        std::fs::create_dir_all(self.path().join(name).parent().unwrap()).unwrap();
        self.write(name, contents)
    }

    /// With a program that is found before all others.
    pub(crate) fn with_program(self, name: &str, script: &str) -> Workplace {
        let place = self.with(&format!("bin/{name}"), script);
        let path = place.path().join("bin").join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    /// The programs of this place, and all others.
    fn search_path(&self) -> OsString {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(self.path().join("bin"));
        std::env::join_paths(own.chain(std::env::split_paths(&others))).unwrap()
    }

    /// The program, here, with a clean environment.
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

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// The folder of the only run.
    pub(crate) fn run_folder(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.path().join("runs")).unwrap();
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    pub(crate) fn summary(&self) -> Value {
        let bytes = std::fs::read(self.run_folder().join("summary.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The trials of the only run, in the order of target, case and trial.
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

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// Everything at once, for snapshots.
    pub(crate) fn shown(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// `bakeoff sim` on a free port.
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

/// A suite with one target over HTTP.
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

/// A folder with that suite and so many cases.
pub(crate) fn suite_of(base_url: &str, limits: &str, cases: usize) -> Workplace {
    let case = |n: usize| format!("{{\"id\": \"c{n}\", \"word\": \"w{n}\"}}\n");
    Workplace::with_suite(&suite(base_url, limits))
        .write("cases.jsonl", (0..cases).map(case).collect::<String>())
}

/// `bakeoff sim` with this profile.
pub(crate) fn profiled(place: &Path, profile: &str) -> Provider {
    let path = place.join("profile.toml");
    std::fs::write(&path, format!("[[profile]]\nname = \"p\"\n{profile}\n")).unwrap();
    Provider::start(&["--profile", path.to_str().unwrap()])
}

/// What the simulated provider has counted.
pub(crate) fn stats(provider: &Provider) -> Value {
    let address = provider.base_url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /stats HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    // The body may come in chunks, whose sizes stand on lines of their own.
    let json = body.lines().find(|line| line.starts_with('{')).unwrap();
    serde_json::from_str(json).unwrap()
}
