//! Runs that are killed while their programs work, and are resumed.

#![cfg(target_os = "linux")]

use crate::support::TestDir;
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

const TRIALS: u64 = 12;

/// Program that starts two children that ignore SIGTERM, one in its process group and one outside. Their ids
/// go to the pipe `started` and to the file `children`. It does not end without a file `go`. It first prints
/// which children of an earlier process are alive.
const PROGRAM: &str = r#"
for id in $(cat HERE/before 2> /dev/null); do
    grep -s ') [^Z] ' /proc/$id/stat
done
stubborn='trap "" TERM; echo $$ | tee -a HERE/children > HERE/started; exec sleep 600'
sh -c "$stubborn" > /dev/null 2>&1 &
setsid sh -c "$stubborn" > /dev/null 2>&1 &
echo x > left-in-the-workspace
test -e HERE/go || wait
echo ok
"#;

struct KilledRun {
    dir: TestDir,
    /// Ids of started children.
    started: Lines<BufReader<File>>,
}

impl KilledRun {
    fn new() -> KilledRun {
        let dir = TestDir::new();
        let here = dir.path().display().to_string();
        let pipe = dir.path().join("started");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Open for reading and writing, so that neither side blocks or sees the end of the pipe.
        let started = File::options().read(true).write(true).open(&pipe).unwrap();
        let suite = format!(
            "[suite]\ntrials = {TRIALS}\nparallel = 2\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"program.sh\"]\n\
             prompt = \"\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
        );
        let dir =
            dir.write("bakeoff.toml", suite).write("program.sh", PROGRAM.replace("HERE", &here));
        KilledRun { dir, started: BufReader::new(started).lines() }
    }

    fn start(&self) -> (Child, Lines<BufReader<ChildStdout>>) {
        let mut command = self.dir.command(&["run", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, events)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn children(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file("children")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Resumes the run, which must end all orphans before it starts anything.
    fn resume(&self, what: &str) {
        std::fs::write(self.file("go"), "").unwrap();
        let _ = std::fs::copy(self.file("children"), self.file("before"));
        let output = self.dir.run(&["run", "--resume", "last"]);
        assert_eq!(output.code, 0, "{what}\n{}", output.transcript());
        let summary = self.dir.summary();
        let target = &summary["targets"][0];
        let numbers = ["pass_count", "counted", "errors", "skipped", "total_trials"];
        let numbers = numbers.map(|name| target[name].as_u64().unwrap());
        assert_eq!(numbers, [TRIALS, TRIALS, 0, 0, TRIALS], "{what}");
        let mut finished: Vec<u64> =
            self.dir.trials().iter().map(|trial| trial["key"]["trial"].as_u64().unwrap()).collect();
        finished.dedup();
        assert_eq!(finished, (1..=TRIALS).collect::<Vec<_>>(), "{what}");
        assert!(!self.dir.left_workspaces(), "{what}");
        for id in self.children() {
            assert!(!is_alive(&id), "{what}: {id}");
        }
    }
}

fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn resume_ends_children_of_a_killed_run_first() {
    let mut killed = KilledRun::new();
    let (mut child, _events) = killed.start();
    // Two programs with two children each; none of them ends.
    let started: Vec<String> = killed.started.by_ref().take(4).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started.iter().all(|id| is_alive(id)), "they ended with the run");
    let work = killed.dir.work_folder().unwrap();
    // Its user can enter it, but not list it.
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 2);
    killed.resume("in the middle");
}

#[test]
fn run_killed_at_a_random_moment_can_be_resumed() {
    for _ in 0..5 {
        let killed = KilledRun::new();
        std::fs::write(killed.file("go"), "").unwrap();
        let (mut child, events) = killed.start();
        // Three events per trial, after one for the run.
        let moment = 1 + RandomState::new().build_hasher().finish() % (3 * TRIALS - 3);
        let seen: Vec<String> = events.take(moment as usize).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let last: Value = serde_json::from_str(seen.last().unwrap()).unwrap();
        killed.resume(&format!("after {moment} events, the last of them {}", last["event"]));
    }
}

#[test]
fn resume_ends_workers_of_a_killed_run() {
    let killed = KilledRun::new();
    let worker = "trap '' TERM\nread question\necho $$ | tee -a HERE/children > HERE/started\ntest -e HERE/go || exec sleep 600\nwhile\n  id=${question##*\\\"id\\\":\\\"}\n  echo \"{\\\"id\\\": \\\"${id%%\\\"*}\\\", \\\"output\\\": \\\"ok\\\"}\"\n  read question\ndo :; done\n";
    let worker = worker.replace("HERE", &killed.dir.path().display().to_string());
    let suite = std::fs::read_to_string(killed.file("bakeoff.toml")).unwrap();
    let suite = suite.replace("prompt = ", "protocol = \"jsonl\"\nprompt = ");
    std::fs::write(killed.file("bakeoff.toml"), suite).unwrap();
    std::fs::write(killed.file("program.sh"), worker).unwrap();
    let mut killed = killed;
    let (mut child, _events) = killed.start();
    let started: Vec<String> = killed.started.by_ref().take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started.iter().all(|id| is_alive(id)));
    killed.resume("workers");
}

/// Replaces the program by a model that makes one tool call and answers with its result.
fn use_tool_model(killed: &KilledRun, call: &str, target: &str, answer: &str) {
    let suite = std::fs::read_to_string(killed.file("bakeoff.toml")).unwrap();
    let suite = suite
        .replace("command = [\"sh\", \"program.sh\"]\n", target)
        .replace("value = \"ok\"", &format!("value = {}", Value::from(answer)));
    let here = killed.dir.path().display().to_string();
    let sim = format!("[sim.worker]\ncalls = [{call}]\n").replace("HERE", &here);
    std::fs::write(killed.file("bakeoff.toml"), format!("{sim}{suite}")).unwrap();
}

#[test]
fn resume_ends_tool_commands_of_a_killed_run() {
    let mut killed = KilledRun::new();
    let call = "{ tool = \"run_command\", arguments = { command = \"sh HERE/program.sh\" } }";
    let target = "model = \"sim/worker\"\ntools = [\"run_command\"]\n";
    use_tool_model(&killed, call, target, "exit code 0\n--- stdout\nok");
    let (mut child, _events) = killed.start();
    let started: Vec<String> = killed.started.by_ref().take(4).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started.iter().all(|id| is_alive(id)), "they ended with the run");
    killed.resume("commands of a model");
}

/// MCP server that ignores SIGTERM and does not reply without a file `go`.
const SERVER: &str = r#"
import json, os, signal, sys, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"name": "s", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    elif request["method"] == "tools/call":
        for name in ["children", "started"]:
            print(os.getpid(), file=open("HERE/" + name, "a"), flush=True)
        while not os.path.exists("HERE/go"):
            time.sleep(600)
        result = {"content": [{"type": "text", "text": "ok"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn resume_ends_mcp_servers_of_a_killed_run() {
    let mut killed = KilledRun::new();
    let here = killed.dir.path().display().to_string();
    std::fs::write(killed.file("server.py"), SERVER.replace("HERE", &here)).unwrap();
    let target = "model = \"sim/worker\"\nmcp = [{ name = \"s\", command = [\"python3\", \"server.py\"] }]\n";
    use_tool_model(&killed, "{ tool = \"s__work\" }", target, "ok");
    let (mut child, _events) = killed.start();
    let started: Vec<String> = killed.started.by_ref().take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started.iter().all(|id| is_alive(id)), "they ended with the run");
    killed.resume("servers of a model");
}
