use super::*;
use crate::fixture;

fn filled(runs: &[Run]) -> (tempfile::TempDir, Archive) {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(Some(dir.path().join("runs"))).unwrap();
    for run in runs {
        Writer::in_archive(&archive, run).0.finish(run).unwrap();
    }
    (dir, archive)
}

fn named(id: &str, started: &str) -> Run {
    Run {
        id: id.into(),
        started: started.into(),
        ..fixture::run()
    }
}

#[test]
fn the_place_follows_the_environment() {
    let with = |vars: &'static [(&str, &str)]| {
        Archive::locate_with(|n| vars.iter().find(|(k, _)| *k == n).map(|(_, v)| v.into()))
            .map(|p| p.display().to_string())
    };
    assert_eq!(
        with(&[
            ("FINGERPOST_HOME", "/f"),
            ("XDG_DATA_HOME", "/x"),
            ("HOME", "/h")
        ])
        .unwrap(),
        "/f/runs"
    );
    assert_eq!(
        with(&[
            ("FINGERPOST_HOME", ""),
            ("XDG_DATA_HOME", "/x"),
            ("HOME", "/h")
        ])
        .unwrap(),
        "/x/fingerpost/runs"
    );
    assert_eq!(
        with(&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")]).unwrap(),
        "/h/.local/share/fingerpost/runs"
    );
    assert!(
        with(&[])
            .unwrap_err()
            .to_string()
            .starts_with("there is no place for the archive")
    );
}

#[test]
fn an_archive_that_does_not_exist_is_empty() {
    let archive = Archive::open(Some("/nonexistent/runs".into())).unwrap();
    assert!(archive.list().unwrap().is_empty());
    assert!(matches!(
        archive.resolve("latest"),
        Err(ArchiveError::NotFound { .. })
    ));
}

#[test]
fn runs_are_listed_by_their_start_whatever_their_id() {
    let (_dir, archive) = filled(&[
        named("zzz", "2026-01-01T00:00:00Z"),
        named("aaa", "2026-01-01T00:00:00.5Z"),
        named("mmm", "2025-01-01T00:00:00Z"),
        named("nnn", "no date"),
    ]);
    let ids: Vec<String> = archive
        .list()
        .unwrap()
        .into_iter()
        .map(|e| e.head.unwrap().id)
        .collect();
    assert_eq!(ids, ["aaa", "zzz", "mmm", "nnn"]);
    let file = |wanted: &str| {
        archive
            .resolve(wanted)
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(file("latest"), "aaa.json");
    assert_eq!(file("latest~"), "zzz.json");
    assert_eq!(file("latest~2"), "mmm.json");
    assert!(
        archive
            .resolve("latest~4")
            .unwrap_err()
            .to_string()
            .contains("holds 4 runs")
    );
}

#[test]
fn an_id_resolves_by_its_start_and_a_path_as_itself() {
    let (dir, archive) = filled(&[
        named("20260101-aa", "2026-01-01T00:00:00Z"),
        named("20260101-ab", "2026-01-02T00:00:00Z"),
    ]);
    assert_eq!(
        archive.resolve("20260101-aa").unwrap(),
        archive.path_of("20260101-aa")
    );
    assert_eq!(
        archive.resolve("20260101-ab").unwrap(),
        archive.path_of("20260101-ab")
    );
    let message = archive.resolve("20260101-a").unwrap_err().to_string();
    assert!(
        message.contains("2 runs") && message.contains("20260101-ab"),
        "{message}"
    );
    let elsewhere = dir.path().join("elsewhere.json");
    assert_eq!(
        archive.resolve(elsewhere.to_str().unwrap()).unwrap(),
        elsewhere
    );
    for nothing in ["", "x", "latest~x", "..", "\u{1b}[2J"] {
        if let Err(e) = archive.resolve(nothing) {
            assert!(!e.to_string().contains('\u{1b}'));
        } else {
            assert_eq!(nothing, "..", "only an existing path may resolve");
        }
    }
}

#[test]
fn importing_keeps_the_file_and_never_overwrites_another_run() {
    let (dir, archive) = filled(&[]);
    let file = dir.path().join("from elsewhere");
    let mut text = serde_json::to_value(fixture::run()).unwrap();
    text["a_later_field"] = "kept".into();
    fs::write(&file, serde_json::to_vec_pretty(&text).unwrap()).unwrap();

    assert_eq!(archive.import(&file).unwrap().1, Imported::Added);
    assert_eq!(archive.import(&file).unwrap().1, Imported::AlreadyThere);
    assert!(fs::read(archive.path_of(&fixture::run().id)).unwrap() == fs::read(&file).unwrap());

    text["seed"] = 7.into();
    fs::write(&file, text.to_string()).unwrap();
    assert!(
        archive
            .import(&file)
            .unwrap_err()
            .to_string()
            .contains("keeps a different run under it")
    );
    assert_eq!(
        load::from_path(&archive.path_of(&fixture::run().id))
            .unwrap()
            .seed,
        42
    );

    let out = dir.path().join("out.json");
    archive.export("latest", &out).unwrap();
    assert!(load::from_path(&out).unwrap() == fixture::run());
}

#[test]
fn an_id_that_is_a_path_is_refused() {
    let (dir, archive) = filled(&[]);
    let file = dir.path().join("evil.json");
    fs::write(
        &file,
        serde_json::to_vec(&named("../../evil", "2026-01-01T00:00:00Z")).unwrap(),
    )
    .unwrap();
    assert!(
        archive
            .import(&file)
            .unwrap_err()
            .to_string()
            .contains("cannot be the id")
    );
}

#[test]
fn removing_needs_whole_ids_and_is_all_or_nothing() {
    let (_dir, archive) = filled(&[
        named("one-1", "2026-01-01T00:00:00Z"),
        named("two-2", "2026-01-02T00:00:00Z"),
    ]);
    let words = |w: &[&str]| w.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let message = archive
        .remove(&words(&["one-1", "two"]))
        .unwrap_err()
        .to_string();
    assert!(message.contains("two-2"), "{message}");
    assert!(archive.remove(&words(&["../runs/one-1"])).is_err());
    assert!(archive.remove(&words(&[""])).is_err());
    assert_eq!(archive.list().unwrap().len(), 2);
    assert_eq!(
        archive.remove(&words(&["one-1", "latest~1"])).unwrap(),
        [archive.path_of("one-1")]
    );
    assert_eq!(archive.list().unwrap().len(), 1);
}

#[test]
fn verifying_names_every_bad_file_and_passes_every_good_one() {
    let (_dir, archive) = filled(&[fixture::run(), fixture::later_run()]);
    assert!(archive.verify().unwrap().iter().all(Result::is_ok));
    let good = fs::read(archive.path_of(&fixture::run().id)).unwrap();
    fs::write(archive.dir().join("cut.json"), &good[..good.len() / 2]).unwrap();
    fs::write(archive.dir().join("misnamed.json"), &good).unwrap();
    let bad: Vec<String> = archive
        .verify()
        .unwrap()
        .into_iter()
        .filter_map(Result::err)
        .collect();
    assert_eq!(bad.len(), 2);
    assert!(bad[0].contains("cut.json is not a complete run"), "{bad:?}");
    assert!(
        bad[1].contains("misnamed.json holds the run 20260102"),
        "{bad:?}"
    );
    // A cut file still has its head, so the list shows it: reading it whole is what `verify` is for.
    assert_eq!(
        archive
            .list()
            .unwrap()
            .iter()
            .filter(|e| e.head.is_ok())
            .count(),
        4
    );
}

#[test]
fn an_id_is_valid_and_sorts_by_its_start() {
    let early = new_id("2026-01-02T03:04:05Z".parse().unwrap(), 0xbad);
    assert_eq!(early, "20260102T030405Z-00000bad");
    assert_eq!(crate::load::valid_id(&early), Ok(()));
    assert!(early < new_id("2026-01-02T03:04:06Z".parse().unwrap(), 0));
    assert_eq!(
        rfc3339("2026-01-02T05:04:05.75+02:00".parse().unwrap()),
        "2026-01-02T03:04:05Z"
    );
}
