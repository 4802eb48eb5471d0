//! Runs that are killed while their programs work, and go on.

#![cfg(target_os = "linux")]

use crate::support::Workplace;
use serde_json::Value;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

const TRIALS: u64 = 12;

/// A program that starts two children which ignore the request to end, one in its group and one that
/// has left it. Their ids go to the pipe `told` and to the file `children`. Unless there is a file
/// `go`, it does not end by itself. First of all it says which children of an earlier process live.
const PROGRAM: &str = r#"
for id in $(cat HERE/before 2> /dev/null); do
    grep -s ') [^Z] ' /proc/$id/stat
done
stubborn='trap "" TERM; echo $$ | tee -a HERE/children > HERE/told; exec sleep 600'
sh -c "$stubborn" > /dev/null 2>&1 &
setsid sh -c "$stubborn" > /dev/null 2>&1 &
echo made > left-in-the-workspace
test -e HERE/go || wait
echo ok
"#;

struct Killed {
    place: Workplace,
    /// Where children tell that they are there.
    told: Lines<BufReader<File>>,
}

impl Killed {
    fn new() -> Killed {
        let place = Workplace::new();
        let here = place.path().display().to_string();
        let pipe = place.path().join("told");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Open for both, so that nobody waits for the other end and no end is the last.
        let told = File::options().read(true).write(true).open(&pipe).unwrap();
        let suite = format!(
            "[suite]\ntrials = {TRIALS}\nparallel = 2\n[[target]]\nname = \"p\"\ncommand = [\"sh\", \"program.sh\"]\n\
             prompt = \"\"\n[[cases.inline]]\nid = \"a\"\n[[check]]\nkind = \"equals\"\nvalue = \"ok\"\n"
        );
        let place =
            place.write("bakeoff.toml", suite).write("program.sh", PROGRAM.replace("HERE", &here));
        Killed { place, told: BufReader::new(told).lines() }
    }

    fn start(&self) -> (Child, Lines<BufReader<ChildStdout>>) {
        let mut command = self.place.command(&["run", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, events)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn children(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file("children")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Goes on with the run; what was left behind is gone before anything starts.
    fn resume(&self, what: &str) {
        std::fs::write(self.file("go"), "").unwrap();
        let _ = std::fs::copy(self.file("children"), self.file("before"));
        let ran = self.place.run(&["run", "--resume", "last"]);
        assert_eq!(ran.code, 0, "{what}\n{}", ran.shown());
        let summary = self.place.summary();
        let target = &summary["targets"][0];
        let numbers = ["pass_count", "counted", "errors", "skipped", "total_trials"];
        let numbers = numbers.map(|name| target[name].as_u64().unwrap());
        assert_eq!(numbers, [TRIALS, TRIALS, 0, 0, TRIALS], "{what}");
        let mut made: Vec<u64> = self
            .place
            .trials()
            .iter()
            .map(|trial| trial["key"]["trial"].as_u64().unwrap())
            .collect();
        made.dedup();
        assert_eq!(made, (1..=TRIALS).collect::<Vec<_>>(), "{what}");
        assert!(!self.place.run_folder().join("work").exists(), "{what}");
        for id in self.children() {
            assert!(!lives(&id), "{what}: {id}");
        }
    }
}

fn lives(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn children_that_outlive_a_killed_run_are_ended_before_it_goes_on() {
    let mut killed = Killed::new();
    let (mut child, _events) = killed.start();
    // Two programs with two children each; none of them ends.
    let told: Vec<String> = killed.told.by_ref().take(4).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.iter().all(|id| lives(id)), "they would be gone in any case");
    let work = killed.place.run_folder().join("work");
    assert_eq!(std::fs::read_dir(work).unwrap().count(), 2);
    killed.resume("in the middle");
}

#[test]
fn runs_that_are_killed_at_any_moment_go_on() {
    for _ in 0..5 {
        let killed = Killed::new();
        std::fs::write(killed.file("go"), "").unwrap();
        let (mut child, events) = killed.start();
        // Three events for each trial, and one before them.
        let moment = 1 + RandomState::new().build_hasher().finish() % (3 * TRIALS - 3);
        let seen: Vec<String> = events.take(moment as usize).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let last: Value = serde_json::from_str(seen.last().unwrap()).unwrap();
        killed.resume(&format!("after {moment} events, the last of them {}", last["event"]));
    }
}

#[test]
fn workers_that_outlive_a_killed_run_are_ended_too() {
    let killed = Killed::new();
    let worker = "trap '' TERM\nread question\necho $$ | tee -a HERE/children > HERE/told\ntest -e HERE/go || exec sleep 600\nwhile\n  id=${question##*\\\"id\\\":\\\"}\n  echo \"{\\\"id\\\": \\\"${id%%\\\"*}\\\", \\\"output\\\": \\\"ok\\\"}\"\n  read question\ndo :; done\n";
    let worker = worker.replace("HERE", &killed.place.path().display().to_string());
    let suite = std::fs::read_to_string(killed.file("bakeoff.toml")).unwrap();
    let suite = suite.replace("prompt = ", "protocol = \"jsonl\"\nprompt = ");
    std::fs::write(killed.file("bakeoff.toml"), suite).unwrap();
    std::fs::write(killed.file("program.sh"), worker).unwrap();
    let mut killed = killed;
    let (mut child, _events) = killed.start();
    let told: Vec<String> = killed.told.by_ref().take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.iter().all(|id| lives(id)));
    killed.resume("workers");
}

/// A model instead of the program: it makes one call, and says what comes back.
fn with_tools(killed: &Killed, call: &str, target: &str, answer: &str) {
    let suite = std::fs::read_to_string(killed.file("bakeoff.toml")).unwrap();
    let suite = suite
        .replace("command = [\"sh\", \"program.sh\"]\n", target)
        .replace("value = \"ok\"", &format!("value = {}", Value::from(answer)));
    let here = killed.place.path().display().to_string();
    let sim = format!("[sim.worker]\ncalls = [{call}]\n").replace("HERE", &here);
    std::fs::write(killed.file("bakeoff.toml"), format!("{sim}{suite}")).unwrap();
}

#[test]
fn commands_of_a_model_that_outlive_a_killed_run_are_ended_too() {
    let mut killed = Killed::new();
    let call = "{ tool = \"run_command\", arguments = { command = \"sh HERE/program.sh\" } }";
    let target = "model = \"sim/worker\"\ntools = [\"run_command\"]\n";
    with_tools(&killed, call, target, "exit code 0\n--- stdout\nok");
    let (mut child, _events) = killed.start();
    let told: Vec<String> = killed.told.by_ref().take(4).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.iter().all(|id| lives(id)), "they would be gone in any case");
    killed.resume("commands of a model");
}

/// A server that does not go when it is asked to, and does not answer unless there is a file `go`.
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
        for name in ["children", "told"]:
            print(os.getpid(), file=open("HERE/" + name, "a"), flush=True)
        while not os.path.exists("HERE/go"):
            time.sleep(600)
        result = {"content": [{"type": "text", "text": "ok"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

#[test]
fn servers_of_a_model_that_outlive_a_killed_run_are_ended_too() {
    let mut killed = Killed::new();
    let here = killed.place.path().display().to_string();
    std::fs::write(killed.file("server.py"), SERVER.replace("HERE", &here)).unwrap();
    let target = "model = \"sim/worker\"\nmcp = [{ name = \"s\", command = [\"python3\", \"server.py\"] }]\n";
    with_tools(&killed, "{ tool = \"s__work\" }", target, "ok");
    let (mut child, _events) = killed.start();
    let told: Vec<String> = killed.told.by_ref().take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(told.iter().all(|id| lives(id)), "they would be gone in any case");
    killed.resume("servers of a model");
}
