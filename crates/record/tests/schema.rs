//! The committed JSON Schema is that of the code, and real output conforms to it.

use std::path::{Path, PathBuf};

use fingerpost_record::Run;
use fingerpost_record::fixture::{self, conform::conforms};
use serde_json::{Value, json};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run.schema.json")
}

fn committed() -> String {
    std::fs::read_to_string(path()).unwrap()
}

#[test]
fn the_committed_schema_is_that_of_the_code() {
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path(), Run::json_schema()).unwrap();
    }
    assert!(
        committed() == Run::json_schema(),
        "docs/run.schema.json is out of date: run `UPDATE_SCHEMA=1 cargo test -p fingerpost-record --test schema`"
    );
}

#[test]
fn a_run_conforms_to_the_schema() {
    let schema: Value = serde_json::from_str(&committed()).unwrap();
    for run in [
        fixture::run(),
        fixture::later_run(),
        fixture::with_everything(),
    ] {
        assert_eq!(
            conforms(&schema, &serde_json::to_value(run).unwrap()),
            Ok(())
        );
    }
}

#[test]
fn what_is_no_run_does_not_conform() {
    let schema: Value = serde_json::from_str(&committed()).unwrap();
    let spoils: [fn(&mut Value); 7] = [
        |v| v["duration_s"] = json!("long"),
        |v| v["measurements"][0]["unit"] = json!("furlongs"),
        |v| v["measurements"][0]["outcome"] = json!(3),
        |v| v["measurements"][0]["params"] = json!({"size": 1.5}),
        |v| v["host"]["cpu"]["count"] = json!(-1),
        |v| v["budgets"][0]["parts"] = json!({}),
        |v| {
            v.as_object_mut().unwrap().remove("host");
        },
    ];
    for (i, spoil) in spoils.iter().enumerate() {
        let mut value = serde_json::to_value(fixture::with_everything()).unwrap();
        spoil(&mut value);
        assert!(
            conforms(&schema, &value).is_err(),
            "spoil {i} should not conform"
        );
    }
}
