//! `bakeoff prices`: the price of a model and its source.

use crate::support::TestDir;
use serde_json::Value;

const SUITE: &str = "[models.local]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9/v1\"\n\
     [models.priced]\nprovider = \"openai\"\nmodel = \"gpt-4o-mini\"\nprices = { input = 1.5, output = 3, cache_read = 0.5 }\n";

#[test]
fn prices_have_their_source() {
    let dir = TestDir::with_suite(SUITE);
    let prices = |model: &str| dir.run(&["prices", model, "--suite", ".", "--json"]).done();
    let kinds = |done: &Value| -> Vec<Option<i64>> {
        let kind = |kind: &str| done[format!("{kind}_nanodollars_per_million_tokens")].as_i64();
        ["input", "output", "cache_read"].map(kind).to_vec()
    };
    for (model, source, expected) in [
        ("sim/echo", "simulated", [Some(0), Some(0), Some(0)]),
        ("priced", "configured", [Some(1_500_000_000), Some(3_000_000_000), Some(500_000_000)]),
        (
            "openai/gpt-4o-mini",
            "catalogue",
            [Some(150_000_000), Some(600_000_000), Some(75_000_000)],
        ),
        ("local", "unknown", [None; 3]),
    ] {
        let done = prices(model);
        assert_eq!((&done["source"], kinds(&done)), (&source.into(), expected.to_vec()), "{model}");
    }
    let output = dir.run(&["prices", "local", "--suite", "."]);
    insta::assert_snapshot!(output.stdout, @r"
    local: price unknown; set `prices` under [models]
      input       – per million tokens
      output      – per million tokens
      cache read  – per million tokens
      cache write – per million tokens
    ");
    insta::assert_snapshot!(dir.run(&["prices", "priced", "--suite", "."]).stdout, @r"
    priced: price configured under [models]
      input       $1.50 per million tokens
      output      $3.00 per million tokens
      cache read  $0.50 per million tokens
      cache write $1.50 per million tokens
    ");
}

#[test]
fn unknown_models_and_providers_are_rejected() {
    let dir = TestDir::new();
    for (model, message) in [
        ("openai/no-such-model", "error: no price known for `openai/no-such-model`\n  hint: "),
        ("acme/m", "error: unknown provider `acme`\n  hint: known providers: "),
        ("mini", "error: unknown model `mini`\n  hint: "),
    ] {
        let output = dir.run(&["prices", model]);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.transcript());
        assert!(output.stderr.starts_with(message), "{}", output.stderr);
    }
}
