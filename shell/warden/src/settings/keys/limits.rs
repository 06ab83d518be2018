use super::super::table::{Kind, Table, field};

pub(in super::super) static SERVER_LIMITS: Table = Table::new(
    "server_limits",
    "How much a server may send. A server that sends more notifications and requests than it may is \
     disconnected, and its health says why.",
    &[
        field("message_size", Kind::Size, "The largest message.").default("\"64MiB\""),
        field(
            "list_size",
            Kind::Size,
            "The size of one list, all pages together.",
        )
        .default("\"64MiB\""),
        field("list_entries", Kind::Count, "The entries of one list.").default("100000"),
        field("list_pages", Kind::Count, "The pages of one list.").default("1000"),
        field(
            "messages_per_minute",
            Kind::Count,
            "Notifications and requests over one connection in a minute.",
        )
        .default("60000"),
        field(
            "bytes_per_minute",
            Kind::Size,
            "The size of the notifications and requests over one connection in a minute.",
        )
        .default("\"256MiB\""),
        field(
            "open_requests",
            Kind::Count,
            "Requests over one connection that agents have not answered yet; further ones are refused.",
        )
        .default("64"),
    ],
);

pub(in super::super) static SESSIONS: Table = Table::new(
    "sessions",
    "How conversations are kept.",
    &[
        field(
            "idle",
            Kind::Duration,
            "How long a conversation without a message is remembered.",
        )
        .default("\"30m\""),
        field(
            "max_requests",
            Kind::Count,
            "Requests of one conversation in flight; further ones are refused.",
        )
        .default("10000"),
        field(
            "max_subscriptions",
            Kind::Count,
            "Resources one conversation may subscribe to.",
        )
        .default("1000"),
        field(
            "in_flight",
            Kind::Size,
            "The size of all requests of one principal in flight, those below 16 KiB aside; further ones are refused.",
        )
        .default("\"256MiB\""),
        field(
            "replay",
            Kind::Size,
            "The size of the messages one conversation can read again after it lost a connection; the oldest \
             go first.",
        )
        .default("\"16MiB\""),
    ],
);
