-- Generated columns are left out: whoever adds one changes nothing that is written here.
SELECT name, type, pk FROM pragma_table_info(?1) ORDER BY cid
