use super::super::key_table::{KeyTable, ValueKind, field};

pub(in super::super) static SERVER_LIMITS: KeyTable = KeyTable::new(
    "server_limits",
    "How much a server may send. The gateway disconnects a server that sends too many notifications \
     and requests, and its health shows why.",
    &[
        field("message_size", ValueKind::Size, "The maximum size of a message.").default("\"64MiB\""),
        field(
            "list_size",
            ValueKind::Size,
            "The maximum size of one list, all pages together.",
        )
        .default("\"64MiB\""),
        field("list_entries", ValueKind::Count, "The maximum number of entries in one list.").default("100000"),
        field("list_pages", ValueKind::Count, "The maximum number of pages of one list.").default("1000"),
        field(
            "messages_per_minute",
            ValueKind::Count,
            "The maximum number of notifications and requests per minute on one connection.",
        )
        .default("60000"),
        field(
            "bytes_per_minute",
            ValueKind::Size,
            "The maximum size of notifications and requests per minute on one connection.",
        )
        .default("\"256MiB\""),
        field(
            "open_requests",
            ValueKind::Count,
            "The maximum number of requests on one connection that agents have not answered yet; the \
             gateway rejects further ones.",
        )
        .default("64"),
    ],
);

pub(in super::super) static SESSIONS: KeyTable = KeyTable::new(
    "sessions",
    "Lifetime and limits of conversations.",
    &[
        field(
            "idle",
            ValueKind::Duration,
            "How long an idle conversation is kept.",
        )
        .default("\"30m\""),
        field(
            "max_requests",
            ValueKind::Count,
            "The maximum number of requests in flight of one conversation; the gateway rejects \
             further ones.",
        )
        .default("10000"),
        field(
            "max_subscriptions",
            ValueKind::Count,
            "The maximum number of resource subscriptions of one conversation.",
        )
        .default("1000"),
        field(
            "in_flight",
            ValueKind::Size,
            "The maximum size of all requests in flight of one principal, not counting those below \
             16 KiB; the gateway rejects further ones.",
        )
        .default("\"256MiB\""),
        field(
            "replay",
            ValueKind::Size,
            "The maximum size of the messages that one conversation can replay after it lost a \
             connection; the gateway drops the oldest first.",
        )
        .default("\"16MiB\""),
    ],
);
