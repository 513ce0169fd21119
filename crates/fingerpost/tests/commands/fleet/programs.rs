//! Stand-ins for the programs of clusters, which a search path begins with.

use std::os::unix::fs::PermissionsExt as _;

use crate::common::Home;

/// A kubectl of this test's own, which has the nodes of a small cluster, runs a pod for each node that the Job names,
/// and keeps its words.
pub const KUBECTL: &str = r#"#!/bin/sh
dir=$(dirname "$0"); echo "$*" >> "$dir/said"
for word; do case $word in --*) ;; *) verb=$word; break;; esac; done
case "$verb $*" in
get*nodes*) echo '{"items":['; for n in k1 k2 k3; do [ $n = k1 ] || echo ,
  [ $n = k3 ] && ready=False || ready=True
  echo '{"metadata":{"name":"'$n'","labels":{"kubernetes.io/hostname":"'$n'"}},"spec":{},'
  echo '"status":{"conditions":[{"type":"Ready","status":"'$ready'"}]}}'
  done; echo ']}';;
create*) for word; do file=$word; done; cp "$file" "$dir/job.json";;
get*pods*) echo '{"items":[{"metadata":{"name":"p1"},"spec":{"nodeName":"k1"},"status":{"phase":"Succeeded"}},
  {"metadata":{"name":"p2"},"spec":{"nodeName":"k2"},"status":{"phase":"Failed"}}]}';;
logs*p1) "$FINGERPOST" fleet node --name k1 -- syscall.null --budget 1;;
logs*p2) echo "panic: no space";;
delete*) ;;
*) echo "unexpected: $*" >&2; exit 1;;
esac
"#;

/// A Slurm that takes the node from the first job, whose child is ended before it can say so.
pub const TAKES: [(&str, &str); 3] = [
    ("sinfo", "#!/bin/sh\necho n1 idle\n"),
    ("squeue", "#!/bin/sh\necho 2026-11-27T17:49:09\n"),
    (
        "srun",
        "#!/bin/sh\nmkdir \"${0%/*}/taken\" 2> /dev/null || exec \"$FINGERPOST\" fleet node --name n1 -- syscall.null \
         --budget 1\n\
        echo 'srun: error: n1: task 0: Terminated' >&2; exit 143\n",
    ),
];

/// Writes them, and gives the search path.
pub fn path_with(home: &Home, programs: &[(&str, &str)]) -> String {
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, text) in programs {
        std::fs::write(bin.join(name), text).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}
