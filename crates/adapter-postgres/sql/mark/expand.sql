-- The next rows that refer to what is marked.
SELECT ({canonical}) COLLATE "C" FROM {table} AS t WHERE {same}{beyond} ORDER BY {list} LIMIT $2
