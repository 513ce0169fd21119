use super::*;

#[test]
fn the_optional_is_left_out_by_name_the_needed_refuses() {
    let Ok(found) = tracefs::find(&WANTED.each_ref().map(|w| w.name)) else {
        return fingerpost_testing::skipped("no tracefs");
    };
    let without = |name: &str| {
        let mut found = found.clone();
        found[WANTED.iter().position(|w| w.name == name).unwrap()] = None;
        resolve(&found, &mut Decoder::default(), &[7, 8])
    };
    let (points, missing) = without("compaction/mm_compaction_begin").unwrap();
    assert!(missing.contains(&"compaction/mm_compaction_begin"));
    assert_eq!(points.len() + missing.len(), WANTED.len());
    assert_eq!(
        points[0].filter.as_deref(),
        Some("common_pid != 7 && common_pid != 8")
    );
    assert_eq!(points[2].filter, None);
    let sentence = without("sock/sk_data_ready").unwrap_err();
    assert!(
        sentence.contains("sock/sk_data_ready") && !sentence.contains('\n'),
        "{sentence}"
    );
}
