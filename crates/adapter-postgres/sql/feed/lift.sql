-- Moves the numbers on. What is drawn meanwhile is far below, so nothing is handed out twice.
SELECT setval('{version}', $1) FROM {version} WHERE last_value < $1
