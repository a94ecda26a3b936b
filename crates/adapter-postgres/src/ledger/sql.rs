//! Every statement of the ledger, one file each. A test prepares them all on a migrated database.

macro_rules! statements {
    ($($name:ident: $text:expr;)*) => {
        $(pub(super) const $name: &str = $text;)*

        #[cfg(test)]
        pub(super) const ALL: &[(&str, &str)] = &[$((stringify!($name), $name),)*];
    };
}

statements! {
    CERTIFICATE_ADD: include_str!("sql/certificate/add.sql");
    CERTIFICATE_COUNT: include_str!("sql/certificate/count.sql");
    CERTIFICATE_DROP: include_str!("sql/certificate/drop.sql");
    CERTIFICATE_LOAD: include_str!("sql/certificate/load.sql");
    CERTIFICATE_OUTDATE: include_str!("sql/certificate/outdate.sql");
    CERTIFICATE_STORE: include_str!("sql/certificate/store.sql");
    CLOCK_NOW: include_str!("sql/clock/now.sql");
    EVENT_ADD: include_str!("sql/event/add.sql");
    EVENT_LIST: include_str!("sql/event/list.sql");
    EVENT_PRUNE: include_str!("sql/event/prune.sql");
    GUARD_READ: include_str!("sql/guard/read.sql");
    ITEM_CLAIM: include_str!("sql/item/claim.sql");
    ITEM_DISCARD: include_str!("sql/item/discard.sql");
    ITEM_DROP: include_str!("sql/item/drop.sql");
    ITEM_ENQUEUE: include_str!("sql/item/enqueue.sql");
    ITEM_LIST: include_str!("sql/item/list.sql");
    ITEM_LOAD: include_str!("sql/item/load.sql");
    ITEM_RECLAIM: include_str!("sql/item/reclaim.sql");
    ITEM_REQUEST: include_str!("sql/item/request.sql");
    ITEM_RETRY: include_str!("sql/item/retry.sql");
    ITEM_SETTLE: include_str!("sql/item/settle.sql");
    ITEM_TALLY: include_str!("sql/item/tally.sql");
    LEASE_END: include_str!("sql/lease/end.sql");
    LEASE_HOLD: include_str!("sql/lease/hold.sql");
    LEASE_LAST: include_str!("sql/lease/last.sql");
    LEASE_LOAD: include_str!("sql/lease/load.sql");
    LEASE_OWN: include_str!("sql/lease/own.sql");
    LEASE_RELEASE: include_str!("sql/lease/release.sql");
    LEASE_RENEW: include_str!("sql/lease/renew.sql");
    LEASE_TAKE: include_str!("sql/lease/take.sql");
    LEDGER_HOLD: include_str!("sql/ledger/hold.sql");
    LEDGER_IDENTITY: include_str!("sql/ledger/identity.sql");
    PIPELINE_ANNOUNCE: include_str!("sql/pipeline/announce.sql");
    PIPELINE_CLOSE: include_str!("sql/pipeline/close.sql");
    PIPELINE_DRAW: include_str!("sql/pipeline/draw.sql");
    PIPELINE_FLOOR: include_str!("sql/pipeline/floor.sql");
    PIPELINE_FREE: include_str!("sql/pipeline/free.sql");
    PIPELINE_HOLD: include_str!("sql/pipeline/hold.sql");
    PIPELINE_LIST: include_str!("sql/pipeline/list.sql");
    PIPELINE_LOAD: include_str!("sql/pipeline/load.sql");
    PIPELINE_NOTE: include_str!("sql/pipeline/note.sql");
    PIPELINE_STEER: include_str!("sql/pipeline/steer.sql");
    RULES_ADD: include_str!("sql/rules/add.sql");
    RULES_DROP: include_str!("sql/rules/drop.sql");
    RUN_ADD: include_str!("sql/run/add.sql");
    RUN_ADVANCE: include_str!("sql/run/advance.sql");
    RUN_DROP: include_str!("sql/run/drop.sql");
    RUN_END: include_str!("sql/run/end.sql");
    RUN_FIND: include_str!("sql/run/find.sql");
    RUN_LOAD: include_str!("sql/run/load.sql");
    RUN_NAMED: include_str!("sql/run/named.sql");
    RUN_PULSE: include_str!("sql/run/pulse.sql");
    RUN_RESTART: include_str!("sql/run/restart.sql");
    RUN_STOP: include_str!("sql/run/stop.sql");
    RUN_WAKE: include_str!("sql/run/wake.sql");
    SCHEMA_CREATE: include_str!("sql/schema/create.sql");
    SCHEMA_FIND: include_str!("sql/schema/find.sql");
    SCHEMA_HOLD: include_str!("sql/schema/hold.sql");
    SCHEMA_MARK: include_str!("sql/schema/mark.sql");
    SCHEMA_VERSION: include_str!("sql/schema/version.sql");
}
