//! The steps of the test command, cheapest first.

use crate::tools::{self, Tool};
use crate::{layers, print, wheel};
use std::process::Command;
use std::time::Instant;

/// Runs all steps, the tests last, and fails at the first step that fails.
///
/// A step whose tool is missing is skipped with a message; the remaining steps run, and the missing tools are
/// reported at the end as a failure.
pub(crate) fn test() -> Result<(), String> {
    let missing = tools::missing();
    for tool in &missing {
        print(&format!("xtask: {} is missing; install it with: {}", tool.name(), tool.hint()));
    }
    let mut steps = Steps { missing, skipped: Vec::new() };
    steps.run("format", &[Tool::Rustfmt], || cargo(&["fmt", "--all", "--check"]))?;
    steps.run("layers", &[], layers::check)?;
    steps.run("lints", &[Tool::Clippy], || {
        cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
    })?;
    steps.run("fuzz targets", &[], fuzz_targets)?;
    steps.run("docs", &[], docs)?;
    steps.run("examples in docs", &[], || {
        cargo(&["test", "--workspace", "--all-features", "--doc", "--quiet"])
    })?;
    steps.run("wheel", &[Tool::Python], || {
        wheel::check().map(|skipped| {
            if let Some(reason) = skipped {
                print(&format!("xtask: skipped the wheel: {reason}"));
            }
        })
    })?;
    // Tests that need Python check for it themselves and print why they are skipped.
    steps.run("tests", &[], || {
        if tools::succeeds("cargo", &["nextest", "--version"]) {
            cargo(&["nextest", "run", "--workspace", "--all-features"])
        } else {
            cargo(&["test", "--workspace", "--all-features", "--all-targets"])
        }
    })?;
    steps.finish()
}

/// The tools that are missing and the steps skipped for it.
struct Steps {
    missing: Vec<Tool>,
    skipped: Vec<String>,
}

impl Steps {
    fn run(
        &mut self,
        name: &str,
        needs: &[Tool],
        step: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(tool) = needs.iter().find(|tool| self.missing.contains(tool)) {
            print(&format!("xtask: {name}: skipped, {} is missing", tool.name()));
            self.skipped.push(name.to_owned());
            return Ok(());
        }
        print(&format!("xtask: {name}"));
        let start = Instant::now();
        step().map_err(|error| format!("{name}: {error}"))?;
        print(&format!("xtask: {name}: {} s", start.elapsed().as_secs()));
        Ok(())
    }

    fn finish(self) -> Result<(), String> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let tools: Vec<String> = (self.missing.iter())
            .map(|tool| format!("  {}: {}", tool.name(), tool.hint()))
            .collect();
        Err(format!(
            "all steps that could run passed; skipped: {}\ninstall what is missing and run again:\n{}",
            self.skipped.join(", "),
            tools.join("\n")
        ))
    }
}

/// Checks the fuzz targets in the target folder of the workspace, so that dependencies are not checked twice.
fn fuzz_targets() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args([
        "check",
        "--manifest-path",
        "crates/llm/fuzz/Cargo.toml",
        "--target-dir",
        "target",
    ]);
    // A check links nothing, so an empty archive replaces libFuzzer, which takes long to compile and needs a C++
    // compiler.
    let archive = std::env::current_dir()
        .map(|folder| folder.join("target/libFuzzer.a"))
        .and_then(|path| std::fs::write(&path, b"!<arch>\n").map(|()| path))
        .map_err(|error| error.to_string())?;
    command.env("CUSTOM_LIBFUZZER_PATH", archive);
    run(&mut command)
}

fn docs() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--all-features", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run(&mut command)
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    run(Command::new("cargo").args(arguments))
}

/// Runs a command to its end; the error has its exit status.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tool_skips_its_steps_and_fails_at_the_end() {
        let mut steps = Steps { missing: vec![Tool::Python], skipped: Vec::new() };
        let mut ran = Vec::new();
        steps
            .run("wheel", &[Tool::Python], || Err("ran".to_owned()))
            .unwrap_or_else(|_| ran.push(1));
        let result = steps.run("tests", &[], || Ok(()));
        assert_eq!((result, ran), (Ok(()), vec![]));
        let error = steps.finish().err().unwrap_or_default();
        assert!(error.contains("skipped: wheel"), "{error}");
        assert!(error.contains("apt-get install python3"), "{error}");
    }

    #[test]
    fn failing_step_names_itself() {
        let mut steps = Steps { missing: Vec::new(), skipped: Vec::new() };
        let result = steps.run("lints", &[Tool::Clippy], || Err("exit status: 1".to_owned()));
        assert_eq!(result, Err("lints: exit status: 1".to_owned()));
        assert_eq!(steps.finish(), Ok(()));
    }
}
