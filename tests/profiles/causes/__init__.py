"""The causes of builds: told from lines, and on small programs whose causes are known."""
