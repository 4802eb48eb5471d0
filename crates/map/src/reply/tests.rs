//! Tests of complete, incomplete and damaged replies in all formats.

use super::*;
use crate::task::FieldType;
use proptest::prelude::*;
use serde_json::json;

fn task() -> Task {
    let number = Field { required: false, ..Field::new("n", FieldType::Integer) };
    let tags = Field { default: Some(json!([])), ..Field::new("tags", FieldType::Array) };
    let mut task = Task::new("x", vec![Field::new("label", FieldType::String), number, tags]);
    task.batch = vec![Field::new("language", FieldType::String)];
    task
}

/// Reads answers for `ab` and `cd`. Returns `ab=label n tags`, or the problem.
fn read_labels(text: &str, format: ReplyFormat) -> Vec<String> {
    let ids = ["ab".to_owned(), "cd".to_owned()];
    match align(text, format, &task(), &ids) {
        Ok(aligned) => ids
            .iter()
            .zip(aligned.answers)
            .map(|(id, answer)| match answer {
                Ok(values) => {
                    let values: Vec<String> = values.iter().map(Value::to_string).collect();
                    format!("{id}={}", values.join(" "))
                }
                Err(error) => format!("{id}: {error}"),
            })
            .collect(),
        Err(problem) => vec![problem],
    }
}

#[test]
fn valid_replies_are_read_in_all_formats_and_wrappings() {
    let expected = [r#"ab="x: <y>" 3 ["p","q"]"#, r#"cd="z" null []"#];
    let json = r#"{"items": [{"id": "cd", "label": "z"}, {"id": "ab", "label": "x: <y>", "n": "3", "tags": ["p", "q"]}]}"#;
    let by_id =
        r#"{"cd": {"label": "z"}, "ab": {"label": "x: <y>", "n": 3, "tags": ["p", "q",],},}"#;
    let lines = "{\"id\":\"ab\",\"label\":\"x: <y>\",\"n\":3,\"tags\":[\"p\",\"q\"]}\n{\"id\":\" CD \",\"label\":\"z\",\"n\":None}";
    let xml = r#"<reply><item id="ab"><label>x: &lt;y&gt;</label><n> 3 </n><tags><value>p</value><value>q</value></tags></item>
        <item><id>cd</id><label><![CDATA[z]]></label></item></reply>"#;
    let loose = "<item id='ab'><label>x: <y></label><n>3</n><tags>p</tags><tags>q</tags><more/></item> <item id='cd'><label>z</label></item>";
    let yaml = "items:\n  - id: ab\n    label: 'x: <y>'\n    n: 3\n    tags: [p, q]\n  - id: \"cd\"\n    label: |-\n      z\nend: true";
    let flat = "- label: 'x: <y>'\n  n: 3\n  tags:\n  - p\n  - q\n  id: ab\n- id: cd\n  label: z\n  n: ~\n...";
    for text in [json, by_id, lines, xml, loose, yaml, flat] {
        for format in ReplyFormat::ALL {
            assert_eq!(read_labels(text, format), expected, "{format}\n{text}");
            let fenced = format!("Here you {{are}}:\n```\n{text}\n```\nAnything <else>?\n- no");
            assert_eq!(read_labels(&fenced, format), expected, "{format}\n{fenced}");
        }
    }
}

#[test]
fn batch_values_are_read() {
    for text in [
        r#"{"batch": {"language": "en"}, "items": [{"id": "ab", "label": "x"}]}"#,
        "<batch><language>en</language></batch><item id=\"ab\"><label>x</label></item>",
        "batch:\n  language: en\nitems:\n  - id: ab\n    label: x\nend: true",
    ] {
        let aligned = align(text, ReplyFormat::Json, &task(), &["ab".to_owned()]).unwrap();
        assert_eq!(aligned.batch, Some(vec![json!("en")]), "{text}");
        assert!(aligned.answers[0].is_ok(), "{text}");
    }
    // An invalid value does not affect the others.
    let mut task = task();
    task.batch.push(Field { max: Some(3.0), ..Field::new("share", FieldType::Number) });
    let text =
        r#"{"batch": {"language": "en", "share": 9}, "items": [{"id": "ab", "label": "x"}]}"#;
    let aligned = align(text, ReplyFormat::Json, &task, &["ab".to_owned()]).unwrap();
    assert_eq!(aligned.batch, Some(vec![json!("en"), Value::Null]));
}

#[test]
fn missing_duplicate_unknown_and_malformed_items_are_distinguished() {
    let report = |text: &str| read_labels(text, ReplyFormat::Json).join("\n");
    insta::assert_snapshot!(report(r#"[{"id":"ab","label":"x"},{"id":"zz","label":"y"}]"#), @r#"
    ab="x" null []
    cd: the reply has no answer for it, and 1 for unknown ids
    "#);
    insta::assert_snapshot!(report(r#"[{"id":"ab","label":"x"},{"id":"ab","label":"x","n":null},{"id":"cd","label":"y"},{"id":"cd","label":"w"}]"#), @r#"
    ab="x" null []
    cd: the reply has several different answers for it
    "#);
    insta::assert_snapshot!(report(r#"[{"id":"ab","n":1.5,"label":"x"},{"id":"cd"}]"#), @r"
    ab: `n` is 1.5, not a value of type integer
    cd: `label` is missing
    ");
    insta::assert_snapshot!(report("<item id=\"ab\"><label>x</label><label>y</label></item><item id=\"cd\"><label>z</label></item>"), @r#"
    ab: `label` comes twice
    cd="z" null []
    "#);
    insta::assert_snapshot!(report("- id: ab\n  label: a: b\n- id: cd\n  label: fine\nend: true"), @r#"
    ab: not YAML: mapping values are not allowed in this context
    cd="fine" null []
    "#);
    // Items with unknown ids make a readable reply; prose does not.
    insta::assert_snapshot!(report(r#"{"items":[{"id":"zz","label":"x"}]}"#), @r"
    ab: the reply has no answer for it, and 1 for unknown ids
    cd: the reply has no answer for it, and 1 for unknown ids
    ");
    insta::assert_snapshot!(report("I cannot help with that."), @"there is no JSON object with items in it");
    insta::assert_snapshot!(report("{\"items\":\n[{\"id\":\"ab\",\"label\":x}]}"), @"a text without quotes (line 2 of the reply)");
    insta::assert_snapshot!(report(r#"{"items":[{"label":"x"},{"label":"y"}]}"#), @"no item has an id");
    insta::assert_snapshot!(report("<item><label>x</label></item>"), @"no item has an id");
    insta::assert_snapshot!(report("- label: x\n- label: y\nend: true"), @"no item has an id");
    insta::assert_snapshot!(read_labels("hm", ReplyFormat::Xml).join(""), @"there is no <item> in it");
    insta::assert_snapshot!(read_labels("- id: ab\n  label: x", ReplyFormat::Yaml).join(""), @"it ends in the middle of an item, or without the last line `end: true`");
}

/// Reads answers that contain objects for `a` and `b`. Returns the first value or the problem of each.
fn read_nested(text: &str, format: ReplyFormat) -> Vec<String> {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let related = Field { items: FieldType::Object, ..optional("related", FieldType::Array) };
    let fields =
        vec![optional("note", FieldType::String), optional("of", FieldType::Object), related];
    let ids = ["a".to_owned(), "b".to_owned()];
    match align(text, format, &Task::new("x", fields), &ids) {
        Ok(aligned) => aligned
            .answers
            .into_iter()
            .map(|answer| answer.map_or_else(|e| e.to_string(), |values| values[0].to_string()))
            .collect(),
        Err(problem) => vec![problem],
    }
}

/// Reads answers with two optional fields for `a` and `b`. Returns the values or the problem of each.
fn read_optional(text: &str) -> Vec<String> {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let fields = vec![optional("note", FieldType::String), optional("score", FieldType::Integer)];
    let ids = ["a".to_owned(), "b".to_owned()];
    match align(text, ReplyFormat::Xml, &Task::new("x", fields), &ids) {
        Ok(aligned) => aligned
            .answers
            .into_iter()
            .map(|answer| {
                answer.map_or_else(|e| e.to_string(), |values| Value::from(values).to_string())
            })
            .collect(),
        Err(problem) => vec![problem],
    }
}

const MISSING: &str = "the reply has no answer for it";

#[test]
fn broken_xml_item_takes_nothing_from_the_next() {
    let b = r#"<item id="b"><note>n1</note><score>1</score></item>"#;
    let second = r#"["n1",1]"#;
    for (broken, first) in [
        (r#"<item id="a"><note>n0<score>0</score></item>"#, "`note` has no end"),
        (r#"<item id="a"><note>n0</item>"#, "`note` has no end"),
        (r#"<item id="a"><note>n0</note>"#, "an <item> has no end"),
        (r#"<item id="a"><note>n0"#, "an <item> has no end"),
        (r#"<item id="a"><note><![CDATA[n0</note></item>"#, "`note` has no end"),
        (r#"<item id="a>"#, MISSING),
        (r#"<item id="a"#, MISSING),
        (r#"<item id="a"><note>n0<note>n</note></item>"#, "`note` has no end"),
        (r#"<item id="a">n0</note></item>"#, "an <item> has a text outside of its fields"),
        (r#"<item id="a"><note>n <item></note></item>"#, "an <item> has no end"),
        (r#"<item id="a"><note>n <sco</note></item>"#, "`note` has a `<` that should be `&lt;`"),
        (
            r#"<item id="a"><note>n <em id="b">"</note></item>"#,
            "`note` has a `<` that should be `&lt;`",
        ),
        (r#"<item id="a"><id>b</id><note>n0</note></item>"#, "an <item> has two ids"),
    ] {
        assert_eq!(read_optional(&format!("{broken}{b}")), [first, second], "{broken}");
    }
    // A lost start tag, and an item within another.
    let lost = r#"<item id="a"><score>0</score> id="b"><note>n1</note></item>"#;
    assert_eq!(read_optional(lost), ["an <item> has a text outside of its fields"]);
    let within = format!(r#"<item id="a"><score>0</score>{b}<note>n0</note></item>"#);
    assert_eq!(read_optional(&within), ["an <item> has no end", second]);
    // Escaped tags are text.
    let quoted = r#"<item id="a"><note>see &lt;item id="b"&gt; or &lt;score&gt;, 1 < 2, <b>so</b></note></item>"#;
    let expected = r#"["see <item id=\"b\"> or <score>, 1 < 2, <b>so</b>",null]"#;
    assert_eq!(read_optional(quoted), [expected, MISSING]);
}

#[test]
fn xml_empty_elements_and_white_space_are_normalised() {
    for (inner, expected) in [
        ("<note></note><score></score>", r#"["",null]"#),
        ("<note/><score />", r#"["",null]"#),
        ("<note> x </note><score> 3 </score>", r#"[" x ",3]"#),
        ("<note>\n    x\n  y\n  </note>", r#"["x\n  y",null]"#),
        ("<note>x\n</note><score>\n3\n</score>", r#"["x\n",3]"#),
        ("<note>\n</note>", r#"["",null]"#),
        ("<note> <![CDATA[ <b> ]]> </note>", r#"[" <b> ",null]"#),
    ] {
        let text = format!("<item id=\"a\">{inner}</item>");
        assert_eq!(read_optional(&text), [expected, MISSING], "{inner}");
    }
    let label =
        Field { options: Some(vec![json!("good")]), ..Field::new("label", FieldType::String) };
    let task = Task::new("x", vec![Field { default: Some(json!("good")), ..label }]);
    let read = align("<item id=\"a\"><label/></item>", ReplyFormat::Xml, &task, &["a".to_owned()]);
    assert_eq!(read.unwrap().answers, [Ok(vec![json!("good")])]);
}

#[test]
fn objects_within_a_json_item_are_not_items() {
    let decoy = r#"{"id":"b","note":"decoy"}"#;
    for (text, expected) in [
        // Complete, and cut at several positions.
        (
            format!(r#"[{{"id":"a","of":{decoy},"related":[{decoy}],"note":"n0"}}]"#),
            vec![r#""n0""#, MISSING],
        ),
        (
            format!(r#"[{{"related":[{decoy}],"of":{decoy},"id":"a","note":"n0"}}]"#),
            vec![r#""n0""#, MISSING],
        ),
        (format!(r#"[{{"id":"a","of":{decoy},"no"#), vec!["it ends in the middle"]),
        (format!(r#"[{{"id":"a","related":[{decoy},{{"k":1"#), vec!["it ends in the middle"]),
        (
            format!(r#"[{{"id":"a","note":n0,"related":[{decoy}]}}, {{"id":"b","note":"n1"}}]"#),
            vec!["a text without quotes (line 1 of the reply)", r#""n1""#],
        ),
        (
            format!(r#"["id":"a","related":[{decoy}]}}]"#),
            vec!["expected a comma or `]` (line 1 of the reply)"],
        ),
        // An object under an id must not have a different id.
        (
            r#"{"a":{"id":"b","note":"n1"},"b":{"note":"n1"}}"#.to_owned(),
            vec!["it stands under `a` and has the id `b`", r#""n1""#],
        ),
    ] {
        assert_eq!(read_nested(&text, ReplyFormat::Json), expected, "{text}");
    }
    for text in [
        format!("<item id=\"a\"><of>{decoy}</of><note>n0</note></item>"),
        format!("- id: a\n  of: {decoy}\n  note: n0\nend: true"),
    ] {
        for format in ReplyFormat::ALL {
            let read = read_nested(&text, format);
            assert!(
                !read.iter().any(|answer| answer.contains("decoy")),
                "{format} {text}: {read:?}"
            );
        }
        let format = if text.starts_with('<') { ReplyFormat::Xml } else { ReplyFormat::Yaml };
        assert_eq!(read_nested(&text, format), [r#""n0""#, MISSING]);
    }
}

#[test]
fn merged_json_items_are_not_mixed() {
    for (text, expected) in [
        // Lost: the first end, both ends, the second start, a quote.
        (
            r#"[{"id":"a","score":0,{"id":"b","note":"n1"}]"#,
            vec!["expected a name in double quotes (line 1 of the reply)", r#"["n1",null]"#],
        ),
        (
            r#"[{"id":"a","score":0,"id":"b","note":"n1"}]"#,
            vec!["`id` comes twice (line 1 of the reply)"],
        ),
        (r#"[{"id":"a","score":0},"id":"b","note":"n1"}]"#, vec!["[null,0]", MISSING]),
        (
            r#"[{"id":"a","note":"n0},{"id":"b","score":1}]"#,
            vec!["expected a comma or `}` (line 1 of the reply)"],
        ),
        (
            r#"[{"id":"a","note":"5" wide","score":0},{"id":"b","score":1}]"#,
            vec!["expected a comma or `}` (line 1 of the reply)", "[null,1]"],
        ),
        (
            r#"[{"id":"a","note":"n","note":"n"},{"id":"b","score":1}]"#,
            vec!["`note` comes twice (line 1 of the reply)", "[null,1]"],
        ),
        (
            r#"[{"id":"a","":"b","score":1}]"#,
            vec!["it has the id of another item in it, at ``", MISSING],
        ),
    ] {
        assert_eq!(read_optional(text), expected, "{text}");
    }
}

#[test]
fn merged_yaml_items_are_not_mixed() {
    let misindented =
        |name: &str| format!("`{name}` is not indented like the item that it follows");
    for (text, first) in [
        ("- id: a\n  note: n\n  score: 0\n  note: n\n", "`note` comes twice".to_owned()),
        ("- id: a\n  score: 0\n  id: b\n  note: n1\n", "`id` comes twice".to_owned()),
        ("- id: a\n  score: 0\nid: b\n  note: n1\n", misindented("id")),
        ("- id: a\n  score: 0\nnote: n1\n", misindented("note")),
        ("- id: a\n  score: 0\n\tnote: n0\n", "a tab is no indentation".to_owned()),
        (
            "- id: a\n  note: \"n0\n    score: 0\"\n",
            "a text goes over several lines without `|`".to_owned(),
        ),
        ("- id: a\n  note: [n0\n", "not YAML: ".to_owned()),
        ("- id: a\n  note: :\"n1\", so\n", "a text that has lost its beginning".to_owned()),
    ] {
        let read = read_optional(&format!("{text}- id: c\n  note: n2\nend: true"));
        assert!(read[0].starts_with(&first), "{text}: {read:?}");
        assert_eq!(read[1].split(',').next(), Some(MISSING), "{text}");
    }
    let comments =
        "- id: a\n  note: Ranked #1\n- id: b\n  note: x#1\n  score: 3 # stars\nend: true";
    assert_eq!(
        read_optional(comments),
        ["a text with ` #` in it is not in quotes", r#"["x#1",3]"#]
    );
    let rest = "- id: a\n  note: \"x\" # 5\\\" wide\"\n- id: b\n  note: \"3\" # stars\nend: true";
    assert_eq!(read_optional(rest), ["there is more behind a text in quotes", r#"["3",null]"#]);
    // Lists within texts, also if the enclosing item has lost its start.
    let text = "- id: a\n  note: |\n    - id: b\n      note: n\n  score: 0\nend: true";
    assert_eq!(read_optional(text), [r#"["- id: b\n  note: n\n",0]"#, MISSING]);
    let lost = "  id: a\n  note: |\n    - id: b\n      note: n\n  score: 0\nend: true";
    assert_eq!(read_optional(lost), ["there is no <item> in it"]);
    // A fence within a text does not end the reply.
    let code = "```yaml\n- id: a\n  note: |\n    ```\n    x\n    ```\n  score: 0\n- id: b\n  note: null\n```";
    assert_eq!(read_optional(code), [r#"["```\nx\n```\n",0]"#, "[null,null]"]);
}

/// Builds a reply with these labels.
fn build_reply(format: ReplyFormat, labels: &[String]) -> (Vec<String>, String) {
    let ids: Vec<String> = (0..labels.len()).map(|n| format!("id{n}x")).collect();
    let join = |show: &dyn Fn(&str, &str) -> String| -> String {
        ids.iter().zip(labels).map(|(id, label)| show(id, label)).collect()
    };
    let quoted = |label: &str| Value::from(label).to_string();
    let text = match format {
        ReplyFormat::Json => {
            let items =
                join(&|id, label| format!("{{\"id\":\"{id}\",\"label\":{}}},", quoted(label)));
            format!("{{\"items\":[{}]}}", items.trim_end_matches(','))
        }
        ReplyFormat::Xml => {
            let escape = |label: &str| label.replace('&', "&amp;").replace('<', "&lt;");
            join(&|id, label| {
                format!("<item id=\"{id}\"><label>{}</label></item>\n", escape(label))
            })
        }
        ReplyFormat::Yaml => {
            let items = join(&|id, label| format!("  - id: {id}\n    label: {}\n", quoted(label)));
            format!("items:\n{items}end: true\n")
        }
    };
    (ids, text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A cut at any position leaves only complete answers.
    #[test]
    fn cut_reply_gives_complete_answers_or_none(
        labels in proptest::collection::vec("[ -~é]{1,12}", 1..6),
        cut in 0.0_f64..1.0,
        requested in 0_usize..3,
        written in 0_usize..3,
    ) {
        let labels: Vec<String> = labels.iter().map(|label| format!("x{}x", label.trim())).collect();
        let (ids, text) = build_reply(ReplyFormat::ALL[written], &labels);
        let mut end = (cut * text.len() as f64) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let task = Task::new("x", vec![Field::new("label", FieldType::String)]);
        let whole = align(&text, ReplyFormat::ALL[requested], &task, &ids).unwrap();
        for (answer, label) in whole.answers.iter().zip(&labels) {
            prop_assert_eq!(answer, &Ok(vec![json!(label)]), "{}", text);
        }
        if let Ok(aligned) = align(&text[..end], ReplyFormat::ALL[requested], &task, &ids) {
            for (answer, label) in aligned.answers.iter().zip(&labels) {
                prop_assert!(answer.is_err() || *answer == Ok(vec![json!(label)]), "{}", &text[..end]);
            }
        }
    }

    /// Reading ends for any text.
    #[test]
    fn any_text_is_read_without_panic(text in "([{}\\[\\]\":,<>/&;\\-#a-z0-9\n ]|id|item|end: true|```){0,200}") {
        let ids = ["ab".to_owned()];
        for format in ReplyFormat::ALL {
            let _ = align(&text, format, &task(), &ids);
        }
    }
}
