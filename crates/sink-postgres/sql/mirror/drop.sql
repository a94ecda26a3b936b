DELETE FROM {mirror} AS m WHERE m._key = ANY ($1::text[]) RETURNING m._key
