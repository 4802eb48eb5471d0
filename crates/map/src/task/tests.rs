//! Task files, good and bad.

use super::*;
use serde_json::json;

const WHOLE: &str = r#"
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
fn reads_every_key() {
    let task = Task::parse(WHOLE).unwrap();
    assert_eq!(task.instructions, "Label each review.");
    let names: Vec<&str> = task.output.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["label", "score", "tags"], "in the order of the file");
    assert_eq!(task.output[0].options, Some(vec![json!("good"), json!("bad")]));
    assert_eq!((task.output[1].min, task.output[1].required), (Some(1.0), false));
    assert_eq!(task.output[2].default, Some(json!([])));
    assert_eq!(task.batch[0].name, "language");
    assert_eq!((task.format, task.pack), (Format::Yaml, PackSize::Items(12)));
    assert_eq!(task.output_tokens_per_item(), 40);
    let shown = task.show.clone().unwrap();
    assert_eq!((shown[0].max_chars, shown[1].max_chars), (None, Some(500)));
    assert_eq!(
        (task.max_tokens_per_request, task.context_tokens, task.max_tokens, task.structured),
        (4000, Some(100_000), Some(2000), Some(false))
    );
    assert_eq!((task.into.as_deref(), task.temperature), (Some("answer"), Some(0.0)));
    // What the plan of a run has anyway is not in the digest; everything else is.
    let same = Task { pack: PackSize::Auto, format: Format::Json, ..task.clone() };
    assert_eq!(same.digest(), task.digest());
    let other = Task { instructions: "Label each letter.".into(), ..task.clone() };
    assert_ne!(other.digest(), task.digest());
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_a_remedy() {
    let shown = |text: &str| {
        let problems = Task::parse(text).unwrap_err();
        let line = |problem: &TaskProblem| {
            let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{:?}: {}{hint}", &text[problem.span.clone()], problem.message)
        };
        problems.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(shown("instrutions = 'x'\n[output.a]\ntyp = 'string'"), @r#"
    "instrutions": unknown key `instrutions` in the task (did you mean `instructions`?)
    "": the task has no `instructions` (what to do with each item)
    "a": `a` has no `type` (one of `string`, `number`, `integer`, `boolean`, `array`, `object`)
    "typ": unknown key `typ` in `a` (did you mean `type`?)
    "#);
    insta::assert_snapshot!(shown("instructions = ''\nshow = []\npack = 0\nformat = 'toml'\noutput = {}"), @r#"
    "''": `instructions` are empty
    "[]": `show` is empty (leave it out to show all)
    "0": `0` is not a number of items from 1 to 1000, or auto
    "'toml'": `toml` is no format; write json, xml or yaml
    "{}": `output` has no fields (such as [output.label] with type = "string")
    "#);
    let fields = "instructions = 'x'\n[output]\nid = { type = 'string' }\n'a b' = { type = 'string' }\n\
        c = { type = 'text' }\nd = { type = 'string', min = 0.5, enum = ['a', 1] }\n\
        e = { type = 'integer', min = 3, max = 2, default = 1.5 }\nf = { type = 'boolean', max = 1, items = 'string' }\n\
        g = { type = 'object', enum = [1] }\nh = 1";
    insta::assert_snapshot!(shown(fields), @r#"
    "id": the name `id` is taken (every item has an `id`, and every row an `error`; take another name)
    "'a b'": `a b` cannot be a field (letters, digits and underscores, and no digit first)
    "'text'": `text` is no type (known here: `string`, `number`, `integer`, `boolean`, `array`, `object`)
    "0.5": `min` is not a length
    "1": `enum` is 1, not a value of type string
    "2": `max` is below `min`
    "1.5": `default` is 1.5, not a value of type integer
    "1": a boolean has no `max`
    "'string'": `items` is for arrays
    "[1]": an object has no `enum`
    "1": `h` is not a table (such as { type = "string" })
    "#);
    insta::assert_snapshot!(shown("instructions = 'x"), @r#""": not TOML: invalid literal string, expected `'`"#);
    let odd = "instructions = 'x'\nshow = ['a', 'b', { field = 'a' }]\ninto = ' '\n[output]\n\
        a = { type = 'string', enum = ['x', 'y', 'x'] }\nb = { type = 'integer', min = 2.2, max = 2.8 }\n\
        c = { type = 'array', items = 'integer', default = ['x'] }\nd = { type = 'array', max = 1, default = ['x', 'y'] }\n\
        e = { type = 'string', enum = ['x'], default = 'z' }\nf = { type = 'number', max = 3, default = 4 }\n\
        g = { type = 'number', enum = [1, 1.0] }\nh = { type = 'array', items = 'integer', default = [1] }";
    insta::assert_snapshot!(shown(odd), @r#"
    "{ field = 'a' }": `a` is shown twice
    "' '": `into` is empty (such as "answer")
    "'x'": "x" comes twice in `enum`
    "2.8": there is no whole number from `min` to `max`
    "['x']": `default` holds "x", not a value of type integer
    "['x', 'y']": `default` is 2 values long, and must be at most 1
    "'z'": `default` is "z", not one of "x"
    "4": `default` is 4, and must be at most 3
    "1.0": 1.0 comes twice in `enum`
    "#);
}

#[test]
fn absurd_numbers_are_large_and_nothing_worse() {
    let text = "instructions = 'x'\ntokens_per_item = 9223372036854775807\n[output]\n\
        a = { type = 'string', max = 1e30 }\nb = { type = 'array', max = 1e300 }\n\
        c = { type = 'integer', min = -1e300, max = 1e300 }\nd = { type = 'number', min = 1e308 }\n\
        [batch]\ne = { type = 'string', max = 1e30 }\nf = { type = 'array', max = 1e30 }";
    let mut task = Task::parse(text).unwrap();
    assert_eq!(task.output_tokens_per_item(), i64::MAX as u64);
    task.tokens_per_item = None;
    assert!(task.output_tokens_per_item() > 1 << 32);
    let batch: u64 = task.batch.iter().map(Field::tokens).sum();
    assert!(batch > 1 << 32);
    for format in Format::ALL {
        assert!(crate::prompt::head(&task, format).contains("1000000"));
    }
}

#[test]
fn names_that_a_form_needs_are_refused_for_it() {
    let text = |format: &str| {
        format!(
            "instructions = 'x'\nformat = '{format}'\n[output]\nitem = {{ type = 'string' }}\n\
             value = {{ type = 'number' }}\nbatch = {{ type = 'string' }}\nreply = {{ type = 'string' }}\n\
             [batch]\nall = {{ type = 'array' }}"
        )
    };
    let problems = Task::parse(&text("xml")).unwrap_err();
    let said: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let expected = [
        "a field cannot be called `item` in XML, where <item> is an item",
        "a field cannot be called `value` in XML, where <value> is a value of a list",
        "a field cannot be called `batch` in XML, where <batch> is what is said once for all items",
    ];
    assert_eq!(said, expected);
    assert_eq!(&text("xml")[problems[0].span.clone()], "item");
    assert_eq!(problems[0].hint.as_deref(), Some("take another name, or `format = \"json\"`"));
    let mut task = Task::parse(&text("json")).unwrap();
    assert_eq!(task.check_format(Format::Yaml), Ok(()));
    assert_eq!(task.check_format(Format::Xml), Err(expected[0].to_owned()));
    // Only where they are ambiguous.
    task.output.remove(0);
    task.batch.clear();
    assert_eq!(task.check_format(Format::Xml), Ok(()));
}
