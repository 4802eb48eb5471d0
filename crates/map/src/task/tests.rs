//! Valid and invalid task files.

use super::*;
use serde_json::json;

const COMPLETE: &str = r#"
instructions = "Label each review."
system = "You are careful."
show = ["title", { field = "body", max_chars = 500 }]
format = "yaml"
pack = 12
tokens_per_item = 40
max_tokens_per_request = 4000
context_tokens = 100000
max_tokens = 2000
temperature = 0
structured = false
into = "answer"

[output.label]
type = "string"
description = "How it sounds"
enum = ["good", "bad"]

[output.score]
type = "integer"
min = 1
max = 5
required = false

[output.tags]
type = "array"
items = "string"
max = 3
default = []

[batch.language]
type = "string"
"#;

#[test]
fn every_key_is_parsed() {
    let task = Task::parse(COMPLETE).unwrap();
    assert_eq!(task.instructions, "Label each review.");
    let names: Vec<&str> = task.output.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["label", "score", "tags"], "in the order of the file");
    assert_eq!(task.output[0].options, Some(vec![json!("good"), json!("bad")]));
    assert_eq!((task.output[1].min, task.output[1].required), (Some(1.0), false));
    assert_eq!(task.output[2].default, Some(json!([])));
    assert_eq!(task.batch[0].name, "language");
    assert_eq!((task.format, task.pack), (ReplyFormat::Yaml, PackSize::Items(12)));
    assert_eq!(task.output_tokens_per_item(), 40);
    let shown = task.show.clone().unwrap();
    assert_eq!((shown[0].max_chars, shown[1].max_chars), (None, Some(500)));
    assert_eq!(
        (task.max_tokens_per_request, task.context_tokens, task.max_tokens, task.structured),
        (4000, Some(100_000), Some(2000), Some(false))
    );
    assert_eq!((task.into.as_deref(), task.temperature), (Some("answer"), Some(0.0)));
    // The plan of a job has pack size and format; the digest has everything else.
    let same = Task { pack: PackSize::Auto, format: ReplyFormat::Json, ..task.clone() };
    assert_eq!(same.digest(), task.digest());
    let other = Task { instructions: "Label each letter.".into(), ..task.clone() };
    assert_ne!(other.digest(), task.digest());
}

/// Journals hold digests, so a different digest makes old jobs impossible to resume.
#[test]
fn digest_is_stable_across_versions() {
    assert_eq!(Task::parse(COMPLETE).unwrap().digest(), "e6b06938b582375c");
}

#[test]
fn problems_are_reported_with_position_and_hint() {
    let report = |text: &str| {
        let problems = Task::parse(text).unwrap_err().problems;
        let line = |problem: &TaskProblem| {
            let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{:?}: {}{hint}", &text[problem.span.clone()], problem.message)
        };
        problems.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(report("instrutions = 'x'\n[output.a]\ntyp = 'string'"), @r#"
    "instrutions": unknown key `instrutions` in the task (did you mean `instructions`?)
    "": the task has no `instructions` (describe what to do with each item)
    "a": `a` has no `type` (one of `string`, `number`, `integer`, `boolean`, `array`, `object`)
    "typ": unknown key `typ` in `a` (did you mean `type`?)
    "#);
    insta::assert_snapshot!(report("instructions = ''\nshow = []\npack = 0\nformat = 'toml'\noutput = {}"), @r#"
    "''": `instructions` is empty
    "[]": `show` is empty (omit it to show all fields)
    "0": invalid pack size `0`: expected 1 to 1000 or `auto`
    "'toml'": unknown format `toml`: expected json, xml or yaml
    "{}": `output` has no fields (such as [output.label] with type = "string")
    "#);
    let fields = "instructions = 'x'\n[output]\nid = { type = 'string' }\n'a b' = { type = 'string' }\n\
        c = { type = 'text' }\nd = { type = 'string', min = 0.5, enum = ['a', 1] }\n\
        e = { type = 'integer', min = 3, max = 2, default = 1.5 }\nf = { type = 'boolean', max = 1, items = 'string' }\n\
        g = { type = 'object', enum = [1] }\nh = 1";
    insta::assert_snapshot!(report(fields), @r#"
    "id": field name `id` is reserved (every item has an `id`, and every row an `error`; rename the field)
    "'a b'": invalid field name `a b` (use letters, digits and underscores, and no digit first)
    "'text'": unknown type `text` (one of `string`, `number`, `integer`, `boolean`, `array`, `object`)
    "0.5": `min` is not a length
    "1": `enum` is 1, not a value of type string
    "2": `max` is below `min`
    "1.5": `default` is 1.5, not a value of type integer
    "1": `max` does not apply to type boolean
    "'string'": `items` applies only to type array
    "[1]": `enum` does not apply to type object
    "1": `h` is not a table (such as { type = "string" })
    "#);
    insta::assert_snapshot!(report("instructions = 'x"), @r#""": not TOML: invalid literal string, expected `'`"#);
    let odd = "instructions = 'x'\nshow = ['a', 'b', { field = 'a' }]\ninto = ' '\n[output]\n\
        a = { type = 'string', enum = ['x', 'y', 'x'] }\nb = { type = 'integer', min = 2.2, max = 2.8 }\n\
        c = { type = 'array', items = 'integer', default = ['x'] }\nd = { type = 'array', max = 1, default = ['x', 'y'] }\n\
        e = { type = 'string', enum = ['x'], default = 'z' }\nf = { type = 'number', max = 3, default = 4 }\n\
        g = { type = 'number', enum = [1, 1.0] }\nh = { type = 'array', items = 'integer', default = [1] }";
    insta::assert_snapshot!(report(odd), @r#"
    "{ field = 'a' }": duplicate field `a` in `show`
    "' '": `into` is empty (such as "answer")
    "'x'": duplicate value "x" in `enum`
    "2.8": no integer lies between `min` and `max`
    "['x']": `default` holds "x", not a value of type integer
    "['x', 'y']": `default` is 2 values long, and must be at most 1
    "'z'": `default` is "z", not one of "x"
    "4": `default` is 4, and must be at most 3
    "1.0": duplicate value 1.0 in `enum`
    "#);
}

#[test]
fn absurd_bounds_do_not_overflow() {
    let text = "instructions = 'x'\ntokens_per_item = 9223372036854775807\n[output]\n\
        a = { type = 'string', max = 1e30 }\nb = { type = 'array', max = 1e300 }\n\
        c = { type = 'integer', min = -1e300, max = 1e300 }\nd = { type = 'number', min = 1e308 }\n\
        [batch]\ne = { type = 'string', max = 1e30 }\nf = { type = 'array', max = 1e30 }";
    let mut task = Task::parse(text).unwrap();
    assert_eq!(task.output_tokens_per_item(), i64::MAX as u64);
    task.tokens_per_item = None;
    assert!(task.output_tokens_per_item() > 1 << 32);
    let batch: u64 = task.batch.iter().map(Field::estimate_tokens).sum();
    assert!(batch > 1 << 32);
    for format in ReplyFormat::ALL {
        assert!(crate::prompt::preamble(&task, format).contains("1000000"));
    }
}

#[test]
fn names_reserved_in_the_format_are_rejected() {
    let text = |format: &str| {
        format!(
            "instructions = 'x'\nformat = '{format}'\n[output]\nitem = {{ type = 'string' }}\n\
             value = {{ type = 'number' }}\nbatch = {{ type = 'string' }}\nreply = {{ type = 'string' }}\n\
             [batch]\nall = {{ type = 'array' }}"
        )
    };
    let problems = Task::parse(&text("xml")).unwrap_err().problems;
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let expected = [
        "field name `item` is reserved in XML: <item> is an item",
        "field name `value` is reserved in XML: <value> is a value of an array",
        "field name `batch` is reserved in XML: <batch> is the element for batch values",
    ];
    assert_eq!(messages, expected);
    assert_eq!(&text("xml")[problems[0].span.clone()], "item");
    assert_eq!(problems[0].hint.as_deref(), Some("rename the field, or set `format = \"json\"`"));
    let mut task = Task::parse(&text("json")).unwrap();
    assert_eq!(task.check_format(ReplyFormat::Yaml), Ok(()));
    assert_eq!(task.check_format(ReplyFormat::Xml).unwrap_err().to_string(), expected[0]);
    // `value` and `batch` are only reserved if the task has arrays and batch fields.
    task.output.remove(0);
    task.batch.clear();
    assert_eq!(task.check_format(ReplyFormat::Xml), Ok(()));
}
