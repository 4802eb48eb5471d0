//! `bakeoff select` on programs and services, and `bakeoff run --roles` with its winner.

use crate::select;
use crate::support::{Provider, TestDir};
use serde_json::Value;
use std::fmt::Write;

#[test]
fn winner_is_run_with_the_file_of_apply() {
    let dir = TestDir::with_suite(&select::suite(30, 4, "", 0));
    let output = dir.run(&["select", "--apply", "roles.toml", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let best = output.done()["best"].clone();
    std::fs::rename(dir.path().join("runs"), dir.path().join("searches")).unwrap();
    let output = dir.run(&["run", "--roles", "roles.toml", "--threshold", "0", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let file = std::fs::read(dir.run_folder().join("run.json")).unwrap();
    let file: Value = serde_json::from_slice(&file).unwrap();
    let parts = &file["suite"]["parts"];
    for role in ["planner", "solver"] {
        assert_eq!(parts[format!("role `{role}`")], best[role], "{file}");
    }
    // Resuming and scoring need no repetition of the flag.
    for arguments in [&["run", "--resume", "last"][..], &["score", "--no-fail"]] {
        let output = dir.run(arguments);
        assert_eq!(output.code, 0, "{}", output.transcript());
    }
}

#[test]
fn roles_file_replaces_roles_and_completes_models() {
    let suite = r#"
        [roles]
        solver = "sim/no"
        [[target]]
        name = "t"
        model = "role/solver"
        prompt = "Solve it."
        [[cases.inline]]
        id = "one"
        [[check]]
        kind = "equals"
        value = "yes"
        [sim.no]
        default = "no"
    "#;
    let roles = "[roles]\nsolver = \"good\"\n[models.good]\nprovider = \"sim\"\nmodel = \"good\"\n\
                 [sim.good]\ndefault = \"yes\"\n[sim.no]\ndefault = \"yes\"\n";
    let dir = TestDir::with_suite(suite).write("roles.toml", roles);
    assert_eq!(dir.run(&["run"]).code, 1);
    let output = dir.run(&["run", "--roles", "roles.toml"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    // A model of the suite is not replaced.
    let dir = dir.write("roles.toml", roles.replace("\"good\"\n[models", "\"sim/no\"\n[models"));
    assert_eq!(dir.run(&["run", "--roles", "roles.toml"]).code, 1);
}

#[test]
fn invalid_roles_files_are_rejected_with_positions() {
    let suite = "[roles]\nsolver = \"sim/no\"\n[[target]]\nname = \"t\"\nmodel = \"role/solver\"\nprompt = \"x\"\n\
                 [[cases.inline]]\nid = \"one\"\n[[check]]\nkind = \"equals\"\nvalue = \"yes\"\n";
    let rejection = |roles: &str| {
        let dir = TestDir::with_suite(suite).write("roles.toml", roles);
        let output = dir.run(&["run", "--roles", "roles.toml"]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        output.stderr
    };
    insta::assert_snapshot!(rejection("[roles]\nsolver = \"nowhere\"\nsolvr = \"sim/no\"\n"), @r#"
    error: there is no model `nowhere`
     --> roles.toml:2:10
      |
    2 | solver = "nowhere"
      |          ^^^^^^^^^
      |
      = help: use a name under [models], or provider/model such as `openai/gpt-4o-mini`
    error: no target of the suite has the role `solvr`
     --> roles.toml:3:1
      |
    3 | solvr = "sim/no"
      | ^^^^^
      |
      = help: did you mean `solver`?
    error: 2 problems; nothing was called
    "#);
    let without_roles = "[models.x]\nprovider = \"sim\"\nmodel = \"x\"\n[suite]\nname = \"y\"\n";
    insta::assert_snapshot!(rejection(without_roles), @r#"
    error: no [roles]
     --> roles.toml:1:1
      |
    1 | [models.x]
      | ^
      |
      = help: write `solver = "provider/model"` under [roles]
    error: unexpected `suite` in a roles file
     --> roles.toml:4:2
      |
    4 | [suite]
      |  ^^^^^
      |
      = help: it has only [roles], [models] and [sim]; other tables belong into the suite
    error: 2 problems; nothing was called
    "#);
    let message = rejection("[roles]\nsolver = \n");
    assert!(
        message.contains("error: not TOML: ") && message.contains("roles.toml:2:"),
        "{message}"
    );
    let dir = TestDir::with_suite(suite);
    let output = dir.run(&["run", "--roles", "none.toml"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
    assert!(output.stderr.contains("cannot read the roles file"), "{}", output.stderr);
}

#[test]
fn services_can_have_roles() {
    let provider = Provider::start(&[]);
    let suite = format!(
        r#"
        [[target]]
        name = "service"
        url = "{}/chat/completions"
        roles = ["solver"]
        connections = 4
        body = {{ model = "{{{{ roles.solver }}}}", messages = [{{ role = "user", content = "{{{{ prompt }}}}" }}] }}
        answer = "$.choices[0].message.content"
        usage = {{ input_tokens = "$.usage.prompt_tokens", output_tokens = "$.usage.completion_tokens" }}
        prompt = "Say {{{{ id }}}}."
        [[check]]
        kind = "contains"
        value = "{{{{ id }}}}"
        [select.roles]
        solver = ["sim/pass-0.0", "sim/echo", "sim/pass-0.1"]
        [cases]
        inline = [{{ id = "a1" }}, {{ id = "b2" }}, {{ id = "c3" }}, {{ id = "d4" }}, {{ id = "e5" }}, {{ id = "f6" }}]
        "#,
        provider.base_url
    );
    let dir = TestDir::with_suite(&suite);
    let output = dir.run(&["select", "--json", "--apply", "roles.toml"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(output.done()["best"], serde_json::json!({ "solver": "sim/echo" }));
    let output = dir.run(&["run", "--roles", "roles.toml"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let wrong = TestDir::with_suite(&suite.replace("roles.solver", "roles.solvr"));
    let output = wrong.run(&["select"]);
    assert_eq!(output.code, 2, "{}", output.transcript());
}

#[test]
fn parallel_bounds_the_workers_of_all_combinations() {
    let worker = "import glob, json, os, sys\n\
        mine = os.environ['HOME'] + '/workers/' + str(os.getpid())\n\
        open(mine, 'w').write('')\n\
        alive = lambda name: os.path.exists('/proc/' + os.path.basename(name))\n\
        for line in sys.stdin:\n    \
            question = json.loads(line)\n    \
            running = sum(map(alive, glob.glob(os.path.dirname(mine) + '/*')))\n    \
            output = os.environ['BAKEOFF_MODEL_SOLVER'] + ' ' + str(running)\n    \
            print(json.dumps({'id': question['id'], 'output': output}), flush=True)\n";
    let mut suite = String::from(
        "[suite]\nparallel = 3\n[[target]]\nname = \"w\"\ncommand = [\"python3\", \"worker.py\"]\nprotocol = \"jsonl\"\n\
         roles = [\"solver\"]\nprompt = \"\"\n[[check]]\nkind = \"contains\"\nvalue = \"sim/m7\"\n\
         [select]\nmethod = \"arm_elimination\"\n[select.roles]\nsolver = [",
    );
    (1..=8).for_each(|number| write!(suite, "\"sim/m{number}\", ").unwrap());
    suite.push_str("]\n");
    (0..12).for_each(|case| write!(suite, "[[cases.inline]]\nid = \"c{case}\"\n").unwrap());
    let dir = TestDir::with_suite(&suite).write("worker.py", worker);
    std::fs::create_dir(dir.path().join("workers")).unwrap();
    let output = dir.run(&["select", "--json"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    assert_eq!(output.done()["best"], serde_json::json!({ "solver": "sim/m7" }));
    let running = dir
        .trials()
        .iter()
        .map(|trial| {
            let output = trial["attempt"]["output"].as_str().unwrap();
            output.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap()
        })
        .max();
    assert!(running <= Some(3), "{running:?} workers");
}
